package org.apache.kafka.coordinator.group;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Subtopology;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Topology;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.TopicInfo;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;

/** A client of a streams application (KIP-1071), in a process of its own, with one subtopology. */
final class StreamsMember extends HeartbeatMember {
    private static final String SUBTOPOLOGY = "0";

    /** The tasks of one role, by subtopology. */
    private record Tasks(Map<String, Set<Integer>> active, Map<String, Set<Integer>> standby, Map<String, Set<Integer>> warmUp) {
        static final Tasks NONE = new Tasks(Map.of(), Map.of(), Map.of());
    }

    boolean stateful;
    long revokeMs = 200;

    private final String process;
    private final List<String> sources;
    private Tasks owned = Tasks.NONE;
    private Tasks target = Tasks.NONE;
    private boolean moving;

    StreamsMember(Simulation simulation, String group, List<String> sources) {
        super(simulation, group);
        this.sources = sources;
        process = simulation.newId();
    }

    @Override
    void goOn() {
        moving = false;
        super.goOn();
    }

    @Override
    void forget() {
        owned = Tasks.NONE;
        target = Tasks.NONE;
        moving = false;
    }

    @Override
    Errors answerTo(int memberEpoch) {
        StreamsGroupHeartbeatRequestData request = new StreamsGroupHeartbeatRequestData()
            .setGroupId(group).setMemberId(id).setMemberEpoch(memberEpoch);
        if (memberEpoch == 0) {
            Subtopology only = new Subtopology().setSubtopologyId(SUBTOPOLOGY).setSourceTopics(sources);
            if (stateful) {
                only.setStateChangelogTopics(List.of(new TopicInfo().setName("app-0-changelog")));
            }
            request.setTopology(new Topology().setEpoch(0).setSubtopologies(List.of(only)))
                .setRebalanceTimeoutMs(300_000).setProcessId(process).setClientTags(List.of());
        }
        if (memberEpoch >= 0) {
            request.setActiveTasks(named(owned.active)).setStandbyTasks(named(owned.standby)).setWarmupTasks(named(owned.warmUp));
        }
        StreamsGroupHeartbeatResponseData answer = orFailed(
            () -> simulation.written(simulation.coordinator().streamsGroupHeartbeat(
                Simulation.from(ApiKeys.STREAMS_GROUP_HEARTBEAT, 0, "streams", host), request)).data(),
            error -> new StreamsGroupHeartbeatResponseData().setErrorCode(error.code()));
        Errors error = Errors.forCode(answer.errorCode());
        if (error == Errors.NONE && memberEpoch >= 0) {
            epoch = answer.memberEpoch();
            if (answer.activeTasks() != null) {
                target = new Tasks(read(answer.activeTasks()), read(answer.standbyTasks()), read(answer.warmupTasks()));
            }
            if (!moving && !owned.equals(target)) {
                Tasks next = target;
                moving = true;
                inLife(revokeMs, () -> {
                    moving = false;
                    owned = next;
                    beatSoon();
                });
            }
        }
        return error;
    }

    private static List<StreamsGroupHeartbeatRequestData.TaskIds> named(Map<String, Set<Integer>> tasks) {
        return tasks.entrySet().stream().filter(of -> !of.getValue().isEmpty())
            .map(of -> new StreamsGroupHeartbeatRequestData.TaskIds()
                .setSubtopologyId(of.getKey()).setPartitions(List.copyOf(of.getValue())))
            .toList();
    }

    private static Map<String, Set<Integer>> read(List<StreamsGroupHeartbeatResponseData.TaskIds> tasks) {
        Map<String, Set<Integer>> found = new TreeMap<>();
        if (tasks != null) {
            tasks.forEach(of -> found.put(of.subtopologyId(), new TreeSet<>(of.partitions())));
        }
        return found;
    }
}
