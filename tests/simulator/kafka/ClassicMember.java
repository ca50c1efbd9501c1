package org.apache.kafka.coordinator.group;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.RebalanceProtocol;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocol;
import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocolCollection;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.LeaveGroupRequestData.MemberIdentity;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData.SyncGroupRequestAssignment;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/**
 * A consumer of the classic protocol, with one of Kafka's own assignors.
 *
 * <p>As Java's, it joins once at a time: from when it is to rejoin until its SyncGroup is answered, what a heartbeat says of a
 * rebalance changes nothing. It sends no heartbeats while its JoinGroup waits.
 */
final class ClassicMember extends Member {
    private static final String CONSUMERS = "consumer";
    private static final String CLIENT_ID = "app";
    private static final long ANSWER_MS = 2;
    private static final long RETRY_MS = 100;
    private static final long HEARTBEAT_MS = 3_000;
    private static final int NO_GENERATION = -1;
    private static final short NEWEST = -1;

    int sessionMs = 45_000;
    /** How long the leader takes to assign. */
    long assignMs = 5;
    /** How long the application is about its records when the client wants to rejoin. */
    long pollMs = 40;
    /** How long a cooperative member takes to give up partitions. */
    long revokeMs = 5;
    long commitEveryMs;
    /** Of its subscription; the newest where it is -1. */
    short version = NEWEST;

    private final List<String> topics;
    private final ConsumerPartitionAssignor assignor;
    private final boolean cooperative;
    private String id;
    private int generation;
    private List<TopicPartition> owned;
    /** Whether it will say what it had: the sticky assignor does, whatever became of the member. */
    private boolean remembers;
    private boolean joining;
    private int beats;

    ClassicMember(Simulation simulation, String group, List<String> topics, ConsumerPartitionAssignor assignor) {
        super(simulation, group);
        this.topics = topics.stream().sorted().toList();
        this.assignor = assignor;
        cooperative = assignor.supportedProtocols().contains(RebalanceProtocol.COOPERATIVE);
    }

    @Override
    void begin() {
        id = "";
        generation = NO_GENERATION;
        owned = List.of();
        remembers = false;
        joining = false;
        rejoinIn(0);
        every(commitEveryMs, this::commit);
    }

    @Override
    void goOn() {
        if (joining) {
            joining = false;
            rejoinIn(0);
        } else {
            beatIn(0);
        }
        every(commitEveryMs, this::commit);
    }

    /** A static member says nothing: it may come back. */
    @Override
    void sayGoodbye() {
        if (instance == null && !id.isEmpty()) {
            LeaveGroupRequestData request = new LeaveGroupRequestData().setGroupId(group)
                .setMembers(List.of(new MemberIdentity().setMemberId(id)));
            orFailed(
                () -> simulation.written(simulation.coordinator().classicGroupLeave(from(ApiKeys.LEAVE_GROUP, 5), request)),
                error -> null);
        }
    }

    private AuthorizableRequestContext from(ApiKeys api, int version) {
        return Simulation.from(api, version, CLIENT_ID, host);
    }

    // --- joining

    private void rejoinIn(long ms) {
        if (!joining) {
            joining = true;
            inLife(ms, this::join);
        }
    }

    private void lose(Errors why) {
        if (why == Errors.UNKNOWN_MEMBER_ID) {
            id = "";
            if (remembers) {
                simulation.removed.accept(this);
            }
        }
        generation = NO_GENERATION;
        owned = List.of();
    }

    private void join() {
        beats++;
        if (!cooperative) {
            owned = List.of();
        }
        JoinGroupRequestProtocolCollection protocols = new JoinGroupRequestProtocolCollection();
        protocols.add(new JoinGroupRequestProtocol().setName(assignor.name()).setMetadata(subscription()));
        JoinGroupRequestData request = new JoinGroupRequestData()
            .setGroupId(group).setMemberId(id).setGroupInstanceId(instance).setProtocolType(CONSUMERS)
            .setSessionTimeoutMs(sessionMs).setRebalanceTimeoutMs(300_000).setProtocols(protocols).setReason("");
        CompletableFuture<JoinGroupResponseData> answered =
            simulation.awaited(new JoinGroupResponseData().setErrorCode(Errors.NOT_COORDINATOR.code()));
        orFailed(
            () -> simulation.written(simulation.coordinator().classicGroupJoin(from(ApiKeys.JOIN_GROUP, 9), request, answered)),
            error -> {
                answered.complete(new JoinGroupResponseData().setErrorCode(error.code()));
                return null;
            });
        int life = beats;
        answered.thenAccept(answer -> inLife(ANSWER_MS, () -> {
            if (life == beats) {
                joined(answer);
            }
        }));
    }

    private byte[] subscription() {
        ByteBuffer data = assignor.subscriptionUserData(new TreeSet<>(topics));
        Subscription of = new Subscription(topics, data, owned, generation, Optional.empty());
        return Simulation.bytes(version == NEWEST
            ? ConsumerProtocol.serializeSubscription(of)
            : ConsumerProtocol.serializeSubscription(of, version));
    }

    private void joined(JoinGroupResponseData answer) {
        Errors error = Errors.forCode(answer.errorCode());
        switch (error) {
            case NONE -> {
                id = answer.memberId();
                generation = answer.generationId();
                beatIn(HEARTBEAT_MS);
                if (answer.leader().equals(id) && !answer.skipAssignment()) {
                    inLife(assignMs, () -> sync(answer.protocolName(), assignments(answer)));
                } else {
                    sync(answer.protocolName(), List.of());
                }
            }
            case MEMBER_ID_REQUIRED -> {
                id = answer.memberId();
                join();
            }
            case UNKNOWN_MEMBER_ID -> {
                lose(error);
                inLife(RETRY_MS, this::join);
            }
            case REBALANCE_IN_PROGRESS, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR -> inLife(RETRY_MS, this::join);
            default -> giveUp();
        }
    }

    private List<SyncGroupRequestAssignment> assignments(JoinGroupResponseData answer) {
        Map<String, Subscription> subscriptions = new LinkedHashMap<>();
        answer.members().forEach(of -> {
            Subscription read = ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(of.metadata()));
            read.setGroupInstanceId(Optional.ofNullable(of.groupInstanceId()));
            subscriptions.put(of.memberId(), read);
        });
        Node broker = new Node(0, "broker", 1);
        Node[] brokers = {broker};
        List<PartitionInfo> partitions = simulation.partitions().entrySet().stream()
            .flatMap(of -> IntStream.range(0, of.getValue())
                .mapToObj(number -> new PartitionInfo(of.getKey(), number, broker, brokers, brokers)))
            .toList();
        Cluster cluster = new Cluster("cluster", List.of(broker), partitions, Set.of(), Set.of());
        List<SyncGroupRequestAssignment> found = new ArrayList<>();
        assignor.assign(cluster, new GroupSubscription(subscriptions)).groupAssignment().forEach((member, of) -> {
            byte[] assignment = Simulation.bytes(ConsumerProtocol.serializeAssignment(of));
            found.add(new SyncGroupRequestAssignment().setMemberId(member).setAssignment(assignment));
        });
        return found;
    }

    private void sync(String protocol, List<SyncGroupRequestAssignment> assignments) {
        SyncGroupRequestData request = new SyncGroupRequestData()
            .setGroupId(group).setGenerationId(generation).setMemberId(id).setGroupInstanceId(instance)
            .setProtocolType(CONSUMERS).setProtocolName(protocol).setAssignments(assignments);
        CompletableFuture<SyncGroupResponseData> answered =
            simulation.awaited(new SyncGroupResponseData().setErrorCode(Errors.NOT_COORDINATOR.code()));
        orFailed(
            () -> simulation.written(simulation.coordinator().classicGroupSync(from(ApiKeys.SYNC_GROUP, 5), request, answered)),
            error -> {
                answered.complete(new SyncGroupResponseData().setErrorCode(error.code()));
                return null;
            });
        int of = generation;
        answered.thenAccept(answer -> inLife(ANSWER_MS, () -> {
            if (of == generation) {
                synced(answer);
            }
        }));
    }

    @SuppressWarnings("removal") // assignors that look at it are given no other
    private void synced(SyncGroupResponseData answer) {
        Errors error = Errors.forCode(answer.errorCode());
        joining = false;
        switch (error) {
            case NONE -> {
                List<TopicPartition> assigned = answer.assignment().length == 0
                    ? List.of()
                    : ConsumerProtocol.deserializeAssignment(ByteBuffer.wrap(answer.assignment())).partitions();
                boolean gives = cooperative && !assigned.containsAll(owned);
                owned = List.copyOf(assigned);
                remembers = assignor instanceof StickyAssignor && !owned.isEmpty();
                assignor.onAssignment(
                    new Assignment(owned, null), new ConsumerGroupMetadata(group, generation, id, Optional.ofNullable(instance)));
                if (gives) {
                    rejoinIn(revokeMs);
                }
            }
            case REBALANCE_IN_PROGRESS -> {
                lose(error);
                rejoinIn(pollMs);
            }
            case NOT_COORDINATOR -> rejoinIn(RETRY_MS);
            case UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION -> {
                lose(error);
                rejoinIn(RETRY_MS);
            }
            default -> giveUp();
        }
    }

    // --- heartbeats and commits

    private void beatIn(long ms) {
        int mine = ++beats;
        inLife(ms + simulation.chance.nextInt(7), () -> {
            if (mine == beats) {
                beat();
            }
        });
    }

    private void beat() {
        HeartbeatRequestData request = new HeartbeatRequestData()
            .setGroupId(group).setMemberId(id).setGroupInstanceId(instance).setGenerationId(generation);
        Errors error = orFailed(
            () -> Errors.forCode(simulation.written(
                simulation.coordinator().classicGroupHeartbeat(from(ApiKeys.HEARTBEAT, 4), request)).errorCode()),
            refused -> refused);
        beatIn(HEARTBEAT_MS);
        switch (error) {
            case REBALANCE_IN_PROGRESS -> rejoinIn(pollMs);
            case UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION -> {
                if (!joining) {
                    lose(error);
                    rejoinIn(RETRY_MS);
                }
            }
            case FENCED_INSTANCE_ID -> giveUp();
            default -> { }
        }
    }

    private void commit() {
        Map<String, List<Integer>> places = new TreeMap<>();
        owned.forEach(of -> places.computeIfAbsent(of.topic(), topic -> new ArrayList<>()).add(of.partition()));
        places.forEach((topic, of) -> simulation.commit(group, id, instance, generation, topic, of, 10));
    }
}
