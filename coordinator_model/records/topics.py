"""Names of the topics that coordinators keep their logs in, for who asks for no more of them."""

from typing import Final

SHARE_STATE_TOPIC: Final = "__share_group_state"
