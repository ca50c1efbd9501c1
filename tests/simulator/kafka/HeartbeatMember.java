package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.protocol.Errors;

/** A client whose heartbeats are all that it says: one is due at any time. */
abstract class HeartbeatMember extends Member {
    static final int LEAVES = -1;
    static final int COMES_BACK = -2;
    private static final long EVERY_MS = 5_000;
    private static final long ANSWER_MS = 3;
    private static final long RETRY_MS = 1_000;

    String id;
    int epoch;
    private int beats;

    HeartbeatMember(Simulation simulation, String group) {
        super(simulation, group);
        id = simulation.newId();
    }

    @Override
    void begin() {
        epoch = 0;
        forget();
        beat();
    }

    @Override
    void goOn() {
        beat();
    }

    /** Beat soon, instead of when it was due. */
    final void beatSoon() {
        beatIn(ANSWER_MS);
    }

    private void beatIn(long ms) {
        int mine = ++beats;
        inLife(ms, () -> {
            if (mine == beats) {
                beat();
            }
        });
    }

    private void beat() {
        beatIn(EVERY_MS + simulation.chance.nextInt(7));
        switch (answerTo(epoch)) {
            case NONE -> { }
            case FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID -> {
                epoch = 0;
                forget();
                beatSoon();
            }
            case UNRELEASED_INSTANCE_ID, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR -> {
                sayAll();
                beatIn(RETRY_MS);
            }
            default -> giveUp();
        }
    }

    @Override
    void sayGoodbye() {
        answerTo(LEAVES);
    }

    /** Send a heartbeat of this epoch, and take in what the answer says. */
    abstract Errors answerTo(int memberEpoch);

    /** Fenced, or new: it owns nothing, and says all about itself again. */
    abstract void forget();

    /** The next heartbeat says all about the member again. */
    void sayAll() {}
}
