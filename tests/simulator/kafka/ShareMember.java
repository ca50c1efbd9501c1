package org.apache.kafka.coordinator.group;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ShareGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ShareGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;

/** A consumer that shares its partitions (KIP-932). The persister that sets up their state answers a moment later. */
final class ShareMember extends HeartbeatMember {
    private static final long PERSISTED_MS = 15;

    private final List<String> topics;

    ShareMember(Simulation simulation, String group, List<String> topics) {
        super(simulation, group);
        this.topics = topics;
    }

    @Override
    void forget() {}

    @Override
    Errors answerTo(int memberEpoch) {
        ShareGroupHeartbeatRequestData request = new ShareGroupHeartbeatRequestData()
            .setGroupId(group).setMemberId(id).setMemberEpoch(memberEpoch)
            .setSubscribedTopicNames(memberEpoch == 0 ? topics : null);
        ShareGroupHeartbeatResponseData answer = orFailed(
            () -> sent(request), error -> new ShareGroupHeartbeatResponseData().setErrorCode(error.code()));
        Errors error = Errors.forCode(answer.errorCode());
        if (error == Errors.NONE && memberEpoch >= 0) {
            epoch = answer.memberEpoch();
        }
        return error;
    }

    private ShareGroupHeartbeatResponseData sent(ShareGroupHeartbeatRequestData request) {
        var answer = simulation.written(simulation.coordinator().shareGroupHeartbeat(
            Simulation.from(ApiKeys.SHARE_GROUP_HEARTBEAT, 1, "share", host), request));
        answer.getValue().ifPresent(state -> {
            Map<Uuid, Set<Integer>> asked = new HashMap<>();
            state.groupTopicPartitionData().topicsData().forEach(topic -> topic.partitions().forEach(
                of -> asked.computeIfAbsent(topic.topicId(), id -> new TreeSet<>()).add(of.partition())));
            simulation.in(
                PERSISTED_MS, () -> simulation.written(simulation.coordinator().initializeShareGroupState(group, asked)));
        });
        return answer.getKey();
    }
}
