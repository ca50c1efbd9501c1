// In Kafka's package: the builders of the two managers are visible there only.
package org.apache.kafka.coordinator.group;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.types.SchemaException;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorExecutor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorTimer;
import org.apache.kafka.coordinator.common.runtime.Deserializer;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.classic.ClassicGroupMember;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataValue;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTopologyValue;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetricsShard;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.ModernGroup;
import org.apache.kafka.coordinator.group.modern.ModernGroupMember;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.modern.share.ShareGroup;
import org.apache.kafka.coordinator.group.modern.share.ShareGroup.InitMapValue;
import org.apache.kafka.coordinator.group.modern.share.ShareGroup.ShareGroupStatePartitionMetadataInfo;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupMember;
import org.apache.kafka.coordinator.group.streams.StreamsGroup;
import org.apache.kafka.coordinator.group.streams.StreamsGroupMember;
import org.apache.kafka.coordinator.group.streams.StreamsTopology;
import org.apache.kafka.coordinator.group.streams.TasksTuple;
import org.apache.kafka.coordinator.group.streams.TasksTupleWithEpochs;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * What Kafka's group coordinator holds after it has loaded a log: one request a line on standard input, one answer a line on
 * standard output, both JSON.
 *
 * <p>A request is a list of what the log of one offsets partition holds, in its order, each as a list:
 *
 * <pre>
 *   ["record", offset, producer id, key, value]   bytes in base64; producer id -1 outside a transaction; value null: tombstone
 *   ["end", producer id, committed]               the marker that ends a producer's transaction
 *   ["show"]                                      not of the log: what is held here is part of the answer
 * </pre>
 *
 * <p>An answer is {"shown": [...], "unknown_types": [...], "failed": null or {"at": index, "error": text}}. A log is read as
 * CoordinatorLoaderImpl reads it: a record of an unknown type is passed over, any other exception ends the loading.
 *
 * <p>Topics stand under their ids where the records have ids, so no metadata image is needed; replaying asks neither it nor a
 * timer. What is shown is the latest state, so no snapshots are taken either.
 */
public final class KafkaReplay {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final short NO_EPOCH = RecordBatch.NO_PRODUCER_EPOCH;

    private final GroupMetadataManager groups;
    private final OffsetMetadataManager offsets;
    private final GroupCoordinatorShard shard;

    private KafkaReplay(GroupCoordinatorConfig config, GroupConfigManager configs, GroupCoordinatorMetrics metrics) {
        LogContext logs = new LogContext();
        SnapshotRegistry registry = new SnapshotRegistry(logs);
        CoordinatorTimer<CoordinatorRecord> timer = idle(CoordinatorTimer.class);
        CoordinatorExecutor<CoordinatorRecord> executor = idle(CoordinatorExecutor.class);
        GroupCoordinatorMetricsShard ofShard = metrics.newMetricsShard(registry, new TopicPartition("__consumer_offsets", 0));
        groups = new GroupMetadataManager.Builder()
            .withLogContext(logs)
            .withSnapshotRegistry(registry)
            .withTime(Time.SYSTEM)
            .withTimer(timer)
            .withExecutor(executor)
            .withConfig(config)
            .withGroupConfigManager(configs)
            .withGroupCoordinatorMetricsShard(ofShard)
            .build();
        offsets = new OffsetMetadataManager.Builder()
            .withLogContext(logs)
            .withSnapshotRegistry(registry)
            .withTime(Time.SYSTEM)
            .withGroupMetadataManager(groups)
            .withGroupCoordinatorConfig(config)
            .withGroupCoordinatorMetricsShard(ofShard)
            .build();
        shard = new GroupCoordinatorShard(logs, groups, offsets, Time.SYSTEM, timer, config, metrics, ofShard);
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // nothing that logs may speak between the answers
        GroupCoordinatorConfig config = GroupCoordinatorConfig.fromProps(Map.of());
        ShareGroupConfig shareConfig = ShareGroupConfig.fromProps(Map.of());
        GroupConfigManager configs = new GroupConfigManager(Map.of(), config, shareConfig);
        GroupCoordinatorMetrics metrics = new GroupCoordinatorMetrics();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(JSON.writeValueAsString(new KafkaReplay(config, configs, metrics).load(JSON.readTree(line))));
            answers.flush();
        }
    }

    private Map<String, Object> load(JsonNode log) throws IOException {
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        List<Object> shown = new ArrayList<>();
        List<Integer> unknownTypes = new ArrayList<>();
        Map<String, Object> failed = null;
        for (int at = 0; at < log.size() && failed == null; at++) {
            JsonNode entry = log.get(at);
            try {
                switch (entry.get(0).asText()) {
                    case "record" -> shard.replay(
                        entry.get(1).asLong(),
                        entry.get(2).asLong(),
                        NO_EPOCH,
                        serde.deserialize(
                            ByteBuffer.wrap(entry.get(3).binaryValue()),
                            entry.get(4).isNull() ? null : ByteBuffer.wrap(entry.get(4).binaryValue())
                        )
                    );
                    case "end" -> shard.replayEndTransactionMarker(
                        entry.get(1).asLong(),
                        NO_EPOCH,
                        entry.get(2).asBoolean() ? TransactionResult.COMMIT : TransactionResult.ABORT
                    );
                    case "show" -> shown.add(held());
                    default -> throw new IOException("unknown entry " + entry);
                }
            } catch (Deserializer.UnknownRecordTypeException unknown) {
                unknownTypes.add((int) unknown.unknownType());
            } catch (RuntimeException exception) {
                failed = new TreeMap<>(Map.of("at", at, "error", exception.toString()));
            }
        }
        Map<String, Object> answer = new TreeMap<>();
        answer.put("shown", shown);
        answer.put("unknown_types", unknownTypes);
        answer.put("failed", failed);
        return answer;
    }

    private Map<String, Object> held() {
        Map<String, Object> shown = new TreeMap<>();
        for (String groupId : groups.groupIds()) {
            Group group = groups.group(groupId);
            Map<String, Object> of = new TreeMap<>();
            of.put("type", group.type().toString());
            of.put("state", group.stateAsString());
            if (group instanceof ClassicGroup classic) {
                describe(classic, of);
            } else if (group instanceof StreamsGroup streams) {
                describe(streams, of);
            } else if (group instanceof ModernGroup<?> modern) {
                describe(modern, of);
            }
            shown.put(groupId, of);
        }
        return new TreeMap<>(Map.of("groups", shown, "offsets", committed()));
    }

    private static void describe(ClassicGroup group, Map<String, Object> of) {
        boolean embedded = ConsumerProtocol.PROTOCOL_TYPE.equals(group.protocolType().orElse(null));
        of.put("simple", group.isSimpleGroup());
        of.put("epoch", group.generationId());
        of.put("protocol_type", group.protocolType().orElse(""));
        of.put("protocol", group.protocolName().orElse(null));
        of.put("leader", group.leaderOrNull());
        of.put("state_timestamp_ms", group.currentStateTimestampOrDefault());
        of.put("subscribed_topics", group.subscribedTopics().map(TreeSet::new).orElse(null));
        Map<String, Object> members = new TreeMap<>();
        for (ClassicGroupMember member : group.allMembers()) {
            Map<String, Object> about = new TreeMap<>();
            about.put("instance_id", member.groupInstanceId().orElse(null));
            about.put("client_id", member.clientId());
            about.put("client_host", member.clientHost());
            about.put("rebalance_timeout_ms", member.rebalanceTimeoutMs());
            about.put("session_timeout_ms", member.sessionTimeoutMs());
            about.put("assigned", embedded ? assignment(member.assignment()) : Map.of());
            members.put(member.memberId(), about);
        }
        of.put("members", members);
    }

    private void describe(ModernGroup<?> group, Map<String, Object> of) {
        of.put("epoch", group.groupEpoch());
        of.put("assignment_epoch", group.assignmentEpoch());
        of.put("metadata_hash", group.metadataHash());
        Map<String, Object> targets = new TreeMap<>();
        for (Map.Entry<String, Assignment> target : group.targetAssignment().entrySet()) {
            targets.put(target.getKey(), byTopicId(target.getValue().partitions()));
        }
        of.put("targets", targets);
        Map<String, Object> members = new TreeMap<>();
        for (ModernGroupMember member : group.members().values()) {
            Map<String, Object> about = new TreeMap<>();
            about.put("epoch", member.memberEpoch());
            about.put("previous_epoch", member.previousMemberEpoch());
            about.put("state", member.state().value());
            about.put("instance_id", member.instanceId());
            about.put("rack_id", member.rackId());
            about.put("client_id", member.clientId());
            about.put("client_host", member.clientHost());
            about.put("subscribed_topics", new TreeSet<>(member.subscribedTopicNames()));
            if (member instanceof ConsumerGroupMember consumer) {
                describe(consumer, about);
            } else if (member instanceof ShareGroupMember share) {
                about.put("assigned", byTopicId(share.assignedPartitions()));
            }
            members.put(member.memberId(), about);
        }
        of.put("members", members);
        if (group instanceof ConsumerGroup consumer) {
            of.put("protocol", consumer.preferredServerAssignor().orElse(null));
            of.put("partition_metadata", consumer.hasSubscriptionMetadataRecord());
            Map<String, Object> regexes = new TreeMap<>();
            consumer.resolvedRegularExpressions().forEach((regex, found) -> regexes.put(regex, new TreeSet<>(found.topics())));
            of.put("regexes", regexes);
        } else if (group instanceof ShareGroup) {
            of.put("delivery_state", deliveryState(group.groupId()));
        }
    }

    private static void describe(ConsumerGroupMember member, Map<String, Object> about) {
        about.put("subscribed_regex", ConsumerGroupMember.subscribedTopicRegexOrNull(member));
        about.put("rebalance_timeout_ms", member.rebalanceTimeoutMs());
        about.put("server_assignor", member.serverAssignorName().orElse(null));
        about.put("classic_session_timeout_ms", member.classicProtocolSessionTimeout().orElse(-1));
        List<String> protocols = new ArrayList<>();
        member.supportedClassicProtocols().ifPresent(
            supported -> supported.stream().map(ConsumerGroupMemberMetadataValue.ClassicProtocol::name).forEach(protocols::add)
        );
        about.put("classic_protocols", protocols);
        about.put("uses_classic_protocol", member.useClassicProtocol());
        about.put("assigned", epochsByTopicId(member.assignedPartitions()));
        about.put("pending_revocation", epochsByTopicId(member.partitionsPendingRevocation()));
    }

    private static void describe(StreamsGroup group, Map<String, Object> of) {
        of.put("epoch", group.groupEpoch());
        of.put("assignment_epoch", group.assignmentEpoch());
        of.put("metadata_hash", group.metadataHash());
        of.put("validated_topology_epoch", group.validatedTopologyEpoch());
        of.put("topology_epoch", group.topology().map(StreamsTopology::topologyEpoch).orElse(null));
        Map<String, Object> subtopologies = new TreeMap<>();
        group.topology().map(StreamsTopology::subtopologies).orElse(Map.of()).forEach((id, part) -> {
            Map<String, Object> about = new TreeMap<>();
            about.put("source_topics", part.sourceTopics());
            about.put("repartition_sink_topics", part.repartitionSinkTopics());
            about.put("repartition_source_topics", names(part.repartitionSourceTopics()));
            about.put("state_changelog_topics", names(part.stateChangelogTopics()));
            subtopologies.put(id, about);
        });
        of.put("subtopologies", subtopologies);
        Map<String, Object> targets = new TreeMap<>();
        for (Map.Entry<String, TasksTuple> target : group.targetAssignment().entrySet()) {
            TasksTuple tasks = target.getValue();
            targets.put(
                target.getKey(),
                byRole(sorted(tasks.activeTasks()), sorted(tasks.standbyTasks()), sorted(tasks.warmupTasks()))
            );
        }
        of.put("targets", targets);
        Map<String, Object> members = new TreeMap<>();
        for (StreamsGroupMember member : group.members().values()) {
            members.put(member.memberId(), about(member));
        }
        of.put("members", members);
    }

    private static Map<String, Object> about(StreamsGroupMember member) {
        Map<String, Object> about = new TreeMap<>();
        about.put("epoch", member.memberEpoch());
        about.put("previous_epoch", member.previousMemberEpoch());
        about.put("state", member.state() == null ? null : member.state().value());
        about.put("instance_id", orNull(member.instanceId()));
        about.put("rack_id", orNull(member.rackId()));
        about.put("client_id", member.clientId());
        about.put("client_host", member.clientHost());
        about.put("rebalance_timeout_ms", member.rebalanceTimeoutMs());
        about.put("topology_epoch", member.topologyEpoch());
        about.put("process_id", member.processId());
        about.put(
            "user_endpoint",
            member.userEndpoint() == null ? null : member.userEndpoint().map(at -> at.host() + ":" + at.port()).orElse(null)
        );
        about.put("client_tags", member.clientTags());
        about.put("assigned", tasks(member.assignedTasks()));
        about.put("pending_revocation", tasks(member.tasksPendingRevocation()));
        return about;
    }

    private static Map<String, Object> tasks(TasksTupleWithEpochs tasks) {
        if (tasks == null) {
            return null;
        }
        Map<String, Object> active = new TreeMap<>();
        tasks.activeTasksWithEpochs().forEach((subtopology, epochs) -> active.put(subtopology, new TreeMap<>(epochs)));
        return byRole(active, sorted(tasks.standbyTasks()), sorted(tasks.warmupTasks()));
    }

    private static Map<String, Object> byRole(Object active, Object standby, Object warmup) {
        return new TreeMap<>(Map.of("active", active, "standby", standby, "warmup", warmup));
    }

    private static List<String> names(List<StreamsGroupTopologyValue.TopicInfo> topics) {
        return topics.stream().map(StreamsGroupTopologyValue.TopicInfo::name).toList();
    }

    private Map<String, Object> deliveryState(String groupId) {
        Map<String, ShareGroupStatePartitionMetadataInfo> byGroup = field(groups, "shareGroupStatePartitionMetadata");
        ShareGroupStatePartitionMetadataInfo info = byGroup.get(groupId);
        if (info == null) {
            info = new ShareGroupStatePartitionMetadataInfo(Map.of(), Map.of(), Set.of());
        }
        Map<String, Object> shown = new TreeMap<>();
        shown.put("initializing", byName(info.initializingTopics().values()));
        shown.put("initialized", byName(info.initializedTopics().values()));
        shown.put("deleting", info.deletingTopics().size());
        return shown;
    }

    /** A topic that was made again stands there twice, under two ids. */
    private static Map<String, Set<Integer>> byName(Collection<InitMapValue> topics) {
        Map<String, Set<Integer>> shown = new TreeMap<>();
        topics.forEach(topic -> shown.computeIfAbsent(topic.name(), __ -> new TreeSet<>()).addAll(topic.partitions()));
        return shown;
    }

    /** Group → [topic, partition, offset, leader epoch, metadata, time of the commit, topic id] of each committed offset. */
    private Map<String, Object> committed() {
        Object store = field(offsets, "offsets");
        Map<String, Map<String, Map<Integer, OffsetAndMetadata>>> byGroup = field(store, "offsetsByGroup");
        Map<String, Object> shown = new TreeMap<>();
        byGroup.forEach((group, byTopic) -> {
            List<Object> of = new ArrayList<>();
            new TreeMap<>(byTopic).forEach((topic, byPartition) -> new TreeMap<>(byPartition).forEach((partition, offset) -> {
                List<Object> row = new ArrayList<>(List.of(topic, partition, offset.committedOffset));
                row.add(offset.leaderEpoch.orElse(-1));
                row.add(offset.metadata);
                row.add(offset.commitTimestampMs);
                row.add(offset.topicId.equals(Uuid.ZERO_UUID) ? null : offset.topicId.toString());
                of.add(row);
            }));
            shown.put(group, of);
        });
        return shown;
    }

    private static Map<String, Set<Integer>> assignment(byte[] assignment) {
        Map<String, Set<Integer>> shown = new TreeMap<>();
        try {
            for (TopicPartition each : ConsumerProtocol.deserializeAssignment(ByteBuffer.wrap(assignment)).partitions()) {
                shown.computeIfAbsent(each.topic(), __ -> new TreeSet<>()).add(each.partition());
            }
        } catch (SchemaException opaque) {
            shown.clear();
        }
        return shown;
    }

    private static Map<String, Object> byTopicId(Map<Uuid, Set<Integer>> partitions) {
        Map<String, Object> shown = new TreeMap<>();
        partitions.forEach((topic, of) -> shown.put(topic.toString(), new TreeSet<>(of)));
        return shown;
    }

    private static Map<String, Object> epochsByTopicId(Map<Uuid, Map<Integer, Integer>> partitions) {
        Map<String, Object> shown = new TreeMap<>();
        partitions.forEach((topic, of) -> shown.put(topic.toString(), new TreeMap<>(of)));
        return shown;
    }

    private static Map<String, Object> sorted(Map<String, Set<Integer>> tasks) {
        Map<String, Object> shown = new TreeMap<>();
        tasks.forEach((subtopology, partitions) -> shown.put(subtopology, new TreeSet<>(partitions)));
        return shown;
    }

    private static String orNull(Optional<String> optional) {
        return optional == null ? null : optional.orElse(null);
    }

    @SuppressWarnings("unchecked")
    private static <T> T field(Object of, String name) {
        try {
            Field field = of.getClass().getDeclaredField(name);
            field.setAccessible(true);
            return (T) field.get(of);
        } catch (ReflectiveOperationException exception) {
            throw new IllegalStateException(exception);
        }
    }

    /** One that never does what it is asked to do later: a replay is over by then. */
    @SuppressWarnings("unchecked")
    private static <T> T idle(Class<?> of) {
        return (T) Proxy.newProxyInstance(of.getClassLoader(), new Class<?>[] {of}, (proxy, method, arguments) ->
            method.getReturnType() == boolean.class ? Boolean.FALSE : null);
    }
}
