"""Requests about groups that kafka-python does not have: it makes the classes from the layouts in `messages/`.

ConsumerGroupDescribe   KIP-848, brokers from 3.7 on; from version 1 on members say which protocol they use
ShareGroupDescribe      KIP-932, brokers from 4.1 on
StreamsGroupDescribe    KIP-1071, brokers from 4.1 on
"""

import types
from typing import Any

from kafka.protocol.api_message import ApiMessage


def _message(name: str) -> Any:  # noqa: ANN401 - kafka-python has no types
    return types.new_class(name, (ApiMessage,), {"load_json": f"{__package__}.messages"})


ConsumerGroupDescribeRequest = _message("ConsumerGroupDescribeRequest")
ConsumerGroupDescribeResponse = _message("ConsumerGroupDescribeResponse")
ShareGroupDescribeRequest = _message("ShareGroupDescribeRequest")
ShareGroupDescribeResponse = _message("ShareGroupDescribeResponse")
StreamsGroupDescribeRequest = _message("StreamsGroupDescribeRequest")
StreamsGroupDescribeResponse = _message("StreamsGroupDescribeResponse")
