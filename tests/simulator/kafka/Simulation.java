// In Kafka's package: the builder of the coordinator's shard is visible there only.
package org.apache.kafka.coordinator.group;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestPartition;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestTopic;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorExecutor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorTimer;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Kafka's own group coordinator, of the broker's jars, on a clock that goes from one thing that is due to the next.
 *
 * <p>What it writes is the log. Members (`Member`) are clients that do what Java's clients do. Times are milliseconds since
 * the simulation began. There is no broker: requests are method calls, and answers come at once.
 */
final class Simulation {
    static final long START_MS = 1_795_600_000_000L;
    private static final short NO_PRODUCER_EPOCH = -1;
    private static final long NO_PRODUCER = -1;
    private static final long REGEX_MATCHED_MS = 20;
    private static final GroupCoordinatorRecordSerde SERDE = new GroupCoordinatorRecordSerde();

    /** A record of the log. */
    record Written(long offset, long timeMs, byte[] key, byte[] value, CoordinatorRecord record) {}

    /** What is due at a time; of one time, in the order in which it was planned. */
    private static final class Due implements Comparable<Due> {
        final long atMs;
        final long number;
        final Runnable what;
        boolean cancelled;

        Due(long atMs, long number, Runnable what) {
            this.atMs = atMs;
            this.number = number;
            this.what = what;
        }

        @Override
        public int compareTo(Due other) {
            return atMs != other.atMs ? Long.compare(atMs, other.atMs) : Long.compare(number, other.number);
        }
    }

    /** A clock that stands still until it is set. */
    private static final class StandingTime implements Time {
        long ms = START_MS;

        @Override
        public long milliseconds() {
            return ms;
        }

        @Override
        public long nanoseconds() {
            return TimeUnit.MILLISECONDS.toNanos(ms);
        }

        @Override
        public void sleep(long ignored) {
            throw new UnsupportedOperationException("nothing waits here");
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException("nothing waits here");
        }
    }

    final Random chance;
    /** Committed offsets by "group|topic|partition": where the next reader of the partition goes on. */
    final Map<String, Long> positions = new HashMap<>();
    /** Called for clients that end with an error. */
    Consumer<Member> gaveUp = of -> { };
    /** Called for living classic members that learn that they were removed, and remember what they had. */
    Consumer<Member> removed = of -> { };
    /** What is added to the time of each record: the clock of the broker that leads was set. */
    long clockIsAheadMs;

    private final PriorityQueue<Due> due = new PriorityQueue<>();
    private final StandingTime time = new StandingTime();
    private final List<Written> log = new ArrayList<>();
    /** How many records there were before each batch. */
    private final List<Integer> batches = new ArrayList<>();
    private final Map<String, Object> settings = new HashMap<>();
    private final Map<String, Properties> groupSettings = new HashMap<>();
    private final Map<String, Uuid> topicIds = new TreeMap<>();
    private final Map<String, Integer> partitions = new TreeMap<>();
    private long planned;
    private long nextOffset;
    private MetadataImage image = MetadataImage.EMPTY;
    private long imageOffset;

    private GroupCoordinatorShard shard;
    private SnapshotRegistry registry;
    private int coordinators;
    private Map<String, Due> timers = new HashMap<>();
    /** What ends the requests that wait, should the coordinator move. */
    private List<Runnable> moved = new ArrayList<>();

    Simulation(long seed) {
        chance = new Random(seed);
    }

    // --- time

    long nowMs() {
        return time.ms - START_MS;
    }

    void in(long ms, Runnable what) {
        plan(nowMs() + ms, what);
    }

    void at(long ms, Runnable what) {
        plan(ms, what);
    }

    private Due plan(long ms, Runnable what) {
        Due planning = new Due(START_MS + ms, planned++, what);
        due.add(planning);
        return planning;
    }

    /** Let all happen that is due until this time. */
    void run(long untilMs) {
        while (!due.isEmpty() && due.peek().atMs <= START_MS + untilMs) {
            Due next = due.poll();
            if (!next.cancelled) {
                time.ms = Math.max(time.ms, next.atMs);
                next.what.run();
            }
        }
        time.ms = START_MS + untilMs;
    }

    // --- what is around the coordinator

    /** A setting of the broker; before the first request only. */
    void set(String name, Object value) {
        settings.put(name, value);
    }

    /** A setting of a group; before the first request only. */
    void setOfGroup(String group, String name, String value) {
        groupSettings.computeIfAbsent(group, of -> new Properties()).put(name, value);
    }

    void topic(String name, int count) {
        Uuid id = idOf(name);
        topicIds.put(name, id);
        partitions.put(name, count);
        List<ApiMessage> records = new ArrayList<>();
        if (imageOffset == 0) {
            short level = MetadataVersion.latestProduction().featureLevel();
            records.add(new FeatureLevelRecord().setName(MetadataVersion.FEATURE_NAME).setFeatureLevel(level));
            records.add(new RegisterBrokerRecord().setBrokerId(0).setFenced(false).setIncarnationId(idOf("broker")));
        }
        records.add(new TopicRecord().setName(name).setTopicId(id));
        for (int partition = 0; partition < count; partition++) {
            records.add(new PartitionRecord().setTopicId(id).setPartitionId(partition).setReplicas(List.of(0)).setIsr(List.of(0))
                .setLeader(0).setDirectories(List.of(Uuid.ZERO_UUID)));
        }
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        records.forEach(delta::replay);
        image = delta.apply(new MetadataProvenance(++imageOffset, 0, time.ms, true));
        if (shard != null) {
            shard.onMetadataUpdate(new KRaftCoordinatorMetadataDelta(delta), new KRaftCoordinatorMetadataImage(image));
        }
    }

    /** Topics and how many partitions each has. */
    Map<String, Integer> partitions() {
        return partitions;
    }

    String nameOf(Uuid topic) {
        return topicIds.entrySet().stream().filter(of -> of.getValue().equals(topic)).findFirst().orElseThrow().getKey();
    }

    private static Uuid idOf(String name) {
        UUID made = UUID.nameUUIDFromBytes(name.getBytes(StandardCharsets.UTF_8));
        return new Uuid(made.getMostSignificantBits(), made.getLeastSignificantBits());
    }

    // --- requests

    /** The coordinator, loaded. */
    GroupCoordinatorShard coordinator() {
        if (shard == null) {
            load();
        }
        return shard;
    }

    /** Write what a request led to; returns its answer. */
    <T> T written(CoordinatorResult<T, CoordinatorRecord> result) {
        if (!result.records().isEmpty()) {
            batches.add(log.size());
        }
        for (CoordinatorRecord of : result.records()) {
            byte[] key = SERDE.serializeKey(of);
            log.add(new Written(nextOffset++, time.ms + clockIsAheadMs, key, SERDE.serializeValue(of), of));
            if (result.replayRecords()) {
                shard.replay(nextOffset - 1, NO_PRODUCER, NO_PRODUCER_EPOCH, of);
            }
        }
        snapshot();
        if (result.appendFuture() != null) {
            result.appendFuture().complete(null);
        }
        return result.response();
    }

    /** An answer that is waited for; where the coordinator moves before, it is this one. */
    <T> CompletableFuture<T> awaited(T ifMoved) {
        CompletableFuture<T> answer = new CompletableFuture<>();
        moved.add(() -> answer.complete(ifMoved));
        return answer;
    }

    static AuthorizableRequestContext from(ApiKeys api, int version, String clientId, String host) {
        try {
            RequestHeader header = new RequestHeader(api, (short) version, clientId, 0);
            ListenerName listener = ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT);
            return new RequestContext(header, "connection", InetAddress.getByName(host), KafkaPrincipal.ANONYMOUS, listener,
                SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
        } catch (UnknownHostException unknown) {
            throw new IllegalArgumentException(unknown);
        }
    }

    /** Commit on from where the group is, `step` records further, in each of these partitions; refused, nothing is written. */
    void commit(String group, String member, String instance, int epoch, String topic, Iterable<Integer> of, long step) {
        OffsetCommitRequestTopic named = new OffsetCommitRequestTopic().setName(topic).setTopicId(topicIds.get(topic));
        Map<String, Long> then = new HashMap<>();
        for (int partition : of) {
            String place = group + "|" + topic + "|" + partition;
            then.put(place, positions.getOrDefault(place, 0L) + step);
            named.partitions().add(new OffsetCommitRequestPartition().setPartitionIndex(partition)
                .setCommittedOffset(then.get(place)).setCommittedMetadata("").setCommittedLeaderEpoch(0));
        }
        OffsetCommitRequestData request = new OffsetCommitRequestData().setGroupId(group).setMemberId(member)
            .setGroupInstanceId(instance).setGenerationIdOrMemberEpoch(epoch).setTopics(List.of(named));
        try {
            var answer = written(coordinator().commitOffset(from(ApiKeys.OFFSET_COMMIT, 10, "app", "10.0.0.1"), request));
            boolean done = answer.topics().stream().flatMap(each -> each.partitions().stream())
                .allMatch(each -> each.errorCode() == 0);
            if (done) {
                positions.putAll(then);
            }
        } catch (ApiException refused) {
            // The member learns from its next heartbeat why.
        }
    }

    /** A group that only commits, so that the log's time goes on until the end. */
    void clock(long everyMs, long untilMs) {
        topic("heartbeats", 1);
        for (long ms = everyMs; ms <= untilMs; ms += everyMs) {
            at(ms, () -> commit("clock", "", null, -1, "heartbeats", List.of(0), 1));
        }
    }

    // --- coordinators come and go

    /** Another broker takes over: it loads the log, and all its timers begin again. */
    void failOver() {
        if (shard != null) {
            load();
        }
    }

    /** Another broker takes over that lacks the last batches: an unclean election. */
    void loseBatches(int count) {
        for (int lost = 0; lost < count && !batches.isEmpty(); lost++) {
            log.subList(batches.remove(batches.size() - 1), log.size()).clear();
        }
        nextOffset = log.isEmpty() ? 0 : log.get(log.size() - 1).offset() + 1;
        failOver();
    }

    private void load() {
        int mine = ++coordinators;
        timers.values().forEach(of -> of.cancelled = true);
        timers = new HashMap<>();
        List<Runnable> waiting = moved;
        moved = new ArrayList<>();
        waiting.forEach(Runnable::run);
        LogContext logs = new LogContext();
        registry = new SnapshotRegistry(logs);
        GroupCoordinatorConfig config = GroupCoordinatorConfig.fromProps(settings);
        GroupConfigManager configs = new GroupConfigManager(settings, config, ShareGroupConfig.fromProps(settings));
        shard = new GroupCoordinatorShard.Builder(config, configs)
            .withAuthorizerPlugin(Optional.empty())
            .withLogContext(logs)
            .withTime(time)
            .withTimer(timer(mine))
            .withExecutor(executor(mine))
            .withCoordinatorMetrics(new GroupCoordinatorMetrics())
            .withTopicPartition(new TopicPartition("__consumer_offsets", 0))
            .withSnapshotRegistry(registry)
            .build();
        groupSettings.forEach(configs::updateGroupConfig);
        log.forEach(of -> shard.replay(of.offset(), NO_PRODUCER, NO_PRODUCER_EPOCH, of.record()));
        snapshot();
        shard.onLoaded(new KRaftCoordinatorMetadataImage(image));
    }

    private void snapshot() {
        registry.idempotentCreateSnapshot(nextOffset);
        registry.deleteSnapshotsUpTo(nextOffset);
    }

    private CoordinatorTimer<CoordinatorRecord> timer(int mine) {
        return new CoordinatorTimer<>() {
            @Override
            public void schedule(
                String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation
            ) {
                schedule(key, delay, unit, retry, 500, operation);
            }

            @Override
            public void schedule(
                String key, long delay, TimeUnit unit, boolean retry, long retryMs, TimeoutOperation<CoordinatorRecord> operation
            ) {
                cancel(key);
                Due[] planning = new Due[1];
                planning[0] = plan(nowMs() + unit.toMillis(delay), () -> {
                    if (mine == coordinators && timers.remove(key, planning[0])) {
                        try {
                            written(operation.generateRecords());
                        } catch (ApiException refused) {
                            if (retry) {
                                schedule(key, retryMs, TimeUnit.MILLISECONDS, true, retryMs, operation);
                            }
                        }
                    }
                });
                timers.put(key, planning[0]);
            }

            @Override
            public void scheduleIfAbsent(
                String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation
            ) {
                if (!timers.containsKey(key)) {
                    schedule(key, delay, unit, retry, operation);
                }
            }

            @Override
            public void cancel(String key) {
                Due planning = timers.remove(key);
                if (planning != null) {
                    planning.cancelled = true;
                }
            }

            @Override
            public boolean isScheduled(String key) {
                return timers.containsKey(key);
            }
        };
    }

    /** What a broker does in another thread is done a moment later. */
    private CoordinatorExecutor<CoordinatorRecord> executor(int mine) {
        Map<String, Object> running = new HashMap<>();
        return new CoordinatorExecutor<>() {
            @Override
            public <R> boolean schedule(String key, TaskRunnable<R> task, TaskOperation<CoordinatorRecord, R> operation) {
                Object token = new Object();
                if (running.putIfAbsent(key, token) != null) {
                    return false;
                }
                in(REGEX_MATCHED_MS, () -> {
                    if (mine == coordinators && running.remove(key, token)) {
                        finish(task, operation);
                    }
                });
                return true;
            }

            private <R> void finish(TaskRunnable<R> task, TaskOperation<CoordinatorRecord, R> operation) {
                R result = null;
                Throwable failure = null;
                try {
                    result = task.run();
                } catch (Throwable thrown) {
                    failure = thrown;
                }
                written(operation.onComplete(result, failure));
            }

            @Override
            public boolean isScheduled(String key) {
                return running.containsKey(key);
            }

            @Override
            public void cancel(String key) {
                running.remove(key);
            }
        };
    }

    // --- the recording

    int records() {
        return log.size();
    }

    /** Of the record that is written next. */
    long nextOffset() {
        return nextOffset;
    }

    /**
     * Write the log as a recording (`streaming/recording/file_format.py`). Below `liveFrom` it is cleaned: of each key the last
     * record. Null: recorded from its beginning.
     */
    void write(Path file, Long liveFrom) throws IOException {
        Map<String, Long> last = new HashMap<>();
        if (liveFrom != null) {
            log.stream().filter(of -> of.offset() < liveFrom).forEach(of -> last.put(base64(of.key()), of.offset()));
        }
        String topics = partitions.entrySet().stream()
            .map(of -> "{\"id\":\"%s\",\"name\":\"%s\",\"partitions\":%d}"
                .formatted(topicIds.get(of.getKey()), of.getKey(), of.getValue()))
            .collect(Collectors.joining(","));
        String live = liveFrom == null ? "" : ",\"live_from\":{\"0\":%d}".formatted(liveFrom);
        List<String> lines = new ArrayList<>();
        lines.add("{\"format\":\"group-recording/1\",\"kafka_version\":\"4.3.1\",\"offsets_topic_partitions\":1,\"topics\":[%s]%s}"
            .formatted(topics, live));
        for (Written of : log) {
            String key = base64(of.key());
            if (liveFrom == null || of.offset() >= liveFrom || last.get(key) == of.offset()) {
                lines.add(String.format("{\"partition\":0,\"offset\":%d,\"timestamp\":%d,\"key\":\"%s\",\"value\":%s}",
                    of.offset(), of.timeMs(), key, of.value() == null ? "null" : "\"" + base64(of.value()) + "\""));
            }
        }
        Files.write(file, lines);
    }

    private static String base64(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }

    /** An id as a client makes one up. */
    String newId() {
        return new Uuid(chance.nextLong(), chance.nextLong()).toString().replace('-', 'x'); // none begins with a dash
    }

    static byte[] bytes(ByteBuffer of) {
        byte[] found = new byte[of.remaining()];
        of.get(found);
        return found;
    }
}
