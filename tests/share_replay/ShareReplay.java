// In Kafka's package: what a shard holds is visible there only.
package org.apache.kafka.coordinator.share;

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
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.DeleteShareGroupStateRequestData;
import org.apache.kafka.common.message.InitializeShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateRequestData;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.Deserializer;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorMetrics;
import org.apache.kafka.server.share.SharePartitionKey;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * Kafka's share coordinator for one partition of its log: one request a line on standard input, one answer a line on standard
 * output, both JSON.
 *
 * <p>A request is {"records_per_snapshot": n, "entries": [...]}, each entry a list:
 *
 * <pre>
 *   ["record", offset, time, key, value]        stands in the log: loaded; bytes in base64, value null is a tombstone
 *   ["initialize", group, topic id, partition, state epoch, start offset]
 *   ["read", group, topic id, partition, leader epoch]
 *   ["write", group, topic id, partition, state epoch, leader epoch, start offset, count of what is done, [[first, last, state, count]]]
 *   ["delete", group, topic id, partition]
 *   ["gone", [topic ids]]                       topics were deleted
 *   ["cold"]                                    the timer for snapshots of what is rarely written
 *   ["time", ms]                                the coordinator's clock
 *   ["prune"]                                   delete what is superfluous from the log's start
 *   ["load"]                                    another coordinator loads the log as it is
 *   ["lose", n]                                 another one loads it without its last n records
 *   ["show"]                                    what is held here is part of the answer
 * </pre>
 *
 * <p>What a request makes the coordinator write goes to the log's end, as bytes, and is replayed from them, as the runtime does.
 * An answer is {"shown": [{"state", "start", "end"}], "log": [[offset, time, key, value]], "unknown_types": [...], "failed"}; `log`
 * has all that was ever read of it, also what was pruned or lost later, in the order in which it was written.
 */
public final class ShareReplay {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ShareCoordinatorMetrics METRICS = new ShareCoordinatorMetrics(); // costly to make
    private static final TopicPartition PARTITION = new TopicPartition("__share_group_state", 0);

    private record Stored(long offset, long time, byte[] key, byte[] value) {}

    private final ShareCoordinatorRecordSerde serde = new ShareCoordinatorRecordSerde();
    private final ShareCoordinatorConfig config;
    private final List<Stored> log = new ArrayList<>();
    private final List<List<Object>> written = new ArrayList<>();
    private final List<Integer> unknownTypes = new ArrayList<>();
    private final Set<Uuid> gone = new HashSet<>();
    private long start = 0;
    private long end = 0;
    private long now = 0;
    private ShareCoordinatorShard shard;

    private ShareReplay(int recordsPerSnapshot) {
        config = new ShareCoordinatorConfig(new AbstractConfig(
            ShareCoordinatorConfig.CONFIG_DEF,
            Map.of(ShareCoordinatorConfig.SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT_CONFIG, recordsPerSnapshot)
        ));
        shard = newShard();
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // nothing that logs may speak between the answers
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonNode request = JSON.readTree(line);
            ShareReplay replay = new ShareReplay(request.get("records_per_snapshot").asInt());
            answers.println(JSON.writeValueAsString(replay.answer(request.get("entries"))));
            answers.flush();
        }
    }

    private Map<String, Object> answer(JsonNode entries) throws IOException {
        List<Object> shown = new ArrayList<>();
        Map<String, Object> failed = null;
        for (int at = 0; at < entries.size() && failed == null; at++) {
            JsonNode entry = entries.get(at);
            try {
                if (entry.get(0).asText().equals("show")) {
                    shown.add(new TreeMap<>(Map.of("state", held(), "start", start, "end", end, "read", written.size())));
                } else {
                    take(entry);
                }
            } catch (RuntimeException exception) {
                failed = new TreeMap<>(Map.of("at", at, "error", exception.toString()));
            }
        }
        Map<String, Object> answer = new TreeMap<>();
        answer.put("shown", shown);
        answer.put("log", written);
        answer.put("unknown_types", unknownTypes);
        answer.put("failed", failed);
        return answer;
    }

    private void take(JsonNode entry) throws IOException {
        switch (entry.get(0).asText()) {
            case "record" -> {
                byte[] value = entry.get(4).isNull() ? null : entry.get(4).binaryValue();
                append(new Stored(entry.get(1).asLong(), entry.get(2).asLong(), entry.get(3).binaryValue(), value));
            }
            case "initialize" -> write(shard.initializeState(new InitializeShareGroupStateRequestData()
                .setGroupId(entry.get(1).asText())
                .setTopics(List.of(new InitializeShareGroupStateRequestData.InitializeStateData()
                    .setTopicId(topic(entry))
                    .setPartitions(List.of(new InitializeShareGroupStateRequestData.PartitionData()
                        .setPartition(entry.get(3).asInt())
                        .setStateEpoch(entry.get(4).asInt())
                        .setStartOffset(entry.get(5).asLong())))))));
            case "read" -> write(shard.readStateAndMaybeUpdateLeaderEpoch(new ReadShareGroupStateRequestData()
                .setGroupId(entry.get(1).asText())
                .setTopics(List.of(new ReadShareGroupStateRequestData.ReadStateData()
                    .setTopicId(topic(entry))
                    .setPartitions(List.of(new ReadShareGroupStateRequestData.PartitionData()
                        .setPartition(entry.get(3).asInt())
                        .setLeaderEpoch(entry.get(4).asInt())))))));
            case "write" -> {
                List<WriteShareGroupStateRequestData.StateBatch> batches = new ArrayList<>();
                for (JsonNode batch : entry.get(8)) {
                    batches.add(new WriteShareGroupStateRequestData.StateBatch()
                        .setFirstOffset(batch.get(0).asLong())
                        .setLastOffset(batch.get(1).asLong())
                        .setDeliveryState((byte) batch.get(2).asInt())
                        .setDeliveryCount((short) batch.get(3).asInt()));
                }
                write(shard.writeState(new WriteShareGroupStateRequestData()
                    .setGroupId(entry.get(1).asText())
                    .setTopics(List.of(new WriteShareGroupStateRequestData.WriteStateData()
                        .setTopicId(topic(entry))
                        .setPartitions(List.of(new WriteShareGroupStateRequestData.PartitionData()
                            .setPartition(entry.get(3).asInt())
                            .setStateEpoch(entry.get(4).asInt())
                            .setLeaderEpoch(entry.get(5).asInt())
                            .setStartOffset(entry.get(6).asLong())
                            .setDeliveryCompleteCount(entry.get(7).asInt())
                            .setStateBatches(batches)))))));
            }
            case "delete" -> write(shard.deleteState(new DeleteShareGroupStateRequestData()
                .setGroupId(entry.get(1).asText())
                .setTopics(List.of(new DeleteShareGroupStateRequestData.DeleteStateData()
                    .setTopicId(topic(entry))
                    .setPartitions(List.of(new DeleteShareGroupStateRequestData.PartitionData()
                        .setPartition(entry.get(3).asInt())))))));
            case "gone" -> {
                Set<Uuid> deleted = new HashSet<>();
                entry.get(1).forEach(id -> deleted.add(Uuid.fromString(id.asText())));
                gone.addAll(deleted);
                write(shard.maybeCleanupShareState(deleted));
            }
            case "cold" -> write(shard.snapshotColdPartitions());
            case "time" -> now = entry.get(1).asLong();
            case "prune" -> start = Math.max(start, shard.lastRedundantOffset().response().orElse(start));
            case "load" -> load();
            case "lose" -> {
                int kept = Math.max(log.size() - entry.get(1).asInt(), 0);
                while (log.size() > kept && log.get(log.size() - 1).offset() >= start) {
                    end = log.remove(log.size() - 1).offset();
                }
                load();
            }
            default -> throw new IOException("unknown entry " + entry);
        }
    }

    private static Uuid topic(JsonNode entry) {
        return Uuid.fromString(entry.get(2).asText());
    }

    private void write(CoordinatorResult<?, CoordinatorRecord> result) {
        for (CoordinatorRecord record : result.records()) {
            append(new Stored(end, now, serde.serializeKey(record), serde.serializeValue(record)));
        }
    }

    private void append(Stored stored) {
        log.add(stored);
        List<Object> row = new ArrayList<>(List.of(stored.offset(), stored.time(), stored.key()));
        row.add(stored.value());
        written.add(row);
        end = stored.offset() + 1;
        replay(stored);
    }

    private void load() {
        shard = newShard();
        log.stream().filter(stored -> stored.offset() >= start).forEach(this::replay);
    }

    /** As CoordinatorLoaderImpl does: a record of an unknown type is passed over. */
    private void replay(Stored stored) {
        try {
            ByteBuffer value = stored.value() == null ? null : ByteBuffer.wrap(stored.value());
            shard.replay(stored.offset(), -1L, (short) -1, serde.deserialize(ByteBuffer.wrap(stored.key()), value));
        } catch (Deserializer.UnknownRecordTypeException unknown) {
            unknownTypes.add((int) unknown.unknownType());
        }
    }

    private ShareCoordinatorShard newShard() {
        ShareCoordinatorShard made = new ShareCoordinatorShard.Builder(config)
            .withLogContext(new LogContext())
            .withSnapshotRegistry(new SnapshotRegistry(new LogContext()))
            .withTime(answering(Time.class, "milliseconds", () -> now))
            .withTimer(null)
            .withExecutor(null)
            .withCoordinatorMetrics(METRICS)
            .withTopicPartition(PARTITION)
            .build();
        CoordinatorMetadataImage.TopicMetadata large =
            answering(CoordinatorMetadataImage.TopicMetadata.class, "partitionCount", () -> Integer.MAX_VALUE);
        made.onMetadataUpdate(
            CoordinatorMetadataDelta.EMPTY,
            answering(CoordinatorMetadataImage.class, "topicMetadata", () -> Optional.of(large))
        );
        return made;
    }

    private Map<String, Object> held() {
        TimelineHashMap<SharePartitionKey, ShareGroupOffset> states = field(shard, "shareStateMap");
        Map<String, Object> shown = new TreeMap<>();
        states.forEach((key, of) -> {
            List<List<Object>> batches = new ArrayList<>();
            for (PersisterStateBatch batch : of.stateBatches()) {
                batches.add(List.of(batch.firstOffset(), batch.lastOffset(), batch.deliveryState(), batch.deliveryCount()));
            }
            Map<String, Object> about = new TreeMap<>();
            about.put("snapshot_epoch", of.snapshotEpoch());
            about.put("state_epoch", of.stateEpoch());
            about.put("leader_epoch", of.leaderEpoch());
            about.put("start_offset", of.startOffset());
            about.put("delivery_complete_count", of.deliveryCompleteCount());
            about.put("create_ms", of.createTimestamp());
            about.put("write_ms", of.writeTimestamp());
            about.put("batches", batches);
            shown.put(key.asCoordinatorKey(), about);
        });
        return shown;
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

    /** One that answers one method, and every other with nothing. */
    private static <T> T answering(Class<T> of, String name, java.util.function.Supplier<Object> answer) {
        return of.cast(Proxy.newProxyInstance(of.getClassLoader(), new Class<?>[] {of}, (proxy, method, arguments) -> {
            if (method.getName().equals(name)) {
                return answer.get();
            }
            return method.getReturnType() == long.class ? (Object) 0L : null;
        }));
    }
}
