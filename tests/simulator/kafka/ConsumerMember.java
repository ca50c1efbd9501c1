package org.apache.kafka.coordinator.group;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData.TopicPartitions;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;

/** A consumer of the consumer protocol (KIP-848): gives up what it is to give up, says so, and then takes what is new. */
final class ConsumerMember extends HeartbeatMember {
    List<String> topics;
    String regex;
    String assignor;
    long revokeMs = 30;
    long commitEveryMs;

    private Map<Uuid, Set<Integer>> owned = new HashMap<>();
    private Map<Uuid, Set<Integer>> target = new HashMap<>();
    private Map<Uuid, Set<Integer>> said;
    private boolean saysAll;
    private boolean revoking;

    ConsumerMember(Simulation simulation, String group, List<String> topics) {
        super(simulation, group);
        this.topics = topics;
    }

    @Override
    void begin() {
        super.begin();
        every(commitEveryMs, this::commit);
    }

    @Override
    void goOn() {
        revoking = false;
        super.goOn();
        every(commitEveryMs, this::commit);
    }

    @Override
    void sayGoodbye() {
        answerTo(instance == null ? LEAVES : COMES_BACK);
    }

    @Override
    void forget() {
        owned = new HashMap<>();
        target = new HashMap<>();
        said = null;
        saysAll = true;
        revoking = false;
    }

    @Override
    void sayAll() {
        saysAll = true;
    }

    @Override
    Errors answerTo(int memberEpoch) {
        ConsumerGroupHeartbeatRequestData request = new ConsumerGroupHeartbeatRequestData()
            .setGroupId(group).setMemberId(id).setMemberEpoch(memberEpoch).setInstanceId(instance);
        if (saysAll) {
            request.setRebalanceTimeoutMs(300_000).setServerAssignor(assignor)
                .setSubscribedTopicNames(topics).setSubscribedTopicRegex(regex);
        }
        if (memberEpoch >= 0 && (saysAll || !owned.equals(said))) {
            said = new HashMap<>(owned);
            request.setTopicPartitions(owned.entrySet().stream().filter(of -> !of.getValue().isEmpty())
                .map(of -> new TopicPartitions().setTopicId(of.getKey()).setPartitions(List.copyOf(of.getValue()))).toList());
        }
        ConsumerGroupHeartbeatResponseData answer = orFailed(
            () -> simulation.written(simulation.coordinator().consumerGroupHeartbeat(
                Simulation.from(ApiKeys.CONSUMER_GROUP_HEARTBEAT, 1, "app", host), request)),
            error -> new ConsumerGroupHeartbeatResponseData().setErrorCode(error.code()));
        Errors error = Errors.forCode(answer.errorCode());
        if (error == Errors.NONE && memberEpoch >= 0) {
            saysAll = false;
            epoch = answer.memberEpoch();
            if (answer.assignment() != null) {
                target = new HashMap<>();
                answer.assignment().topicPartitions().forEach(of -> target.put(of.topicId(), new TreeSet<>(of.partitions())));
            }
            reconcile();
        }
        return error;
    }

    private void reconcile() {
        if (revoking || owned.equals(target)) {
            return;
        }
        Map<Uuid, Set<Integer>> next = target;
        boolean gives = owned.entrySet().stream()
            .anyMatch(of -> !next.getOrDefault(of.getKey(), Set.of()).containsAll(of.getValue()));
        if (!gives) {
            owned = next;
            beatSoon();
            return;
        }
        revoking = true;
        inLife(revokeMs, () -> {
            revoking = false;
            owned = next;
            beatSoon();
        });
    }

    private void commit() {
        owned.forEach((topic, of) -> {
            if (!of.isEmpty()) {
                simulation.commit(group, id, instance, epoch, simulation.nameOf(topic), new HashSet<>(of), 10);
            }
        });
    }
}
