package org.apache.kafka.coordinator.group;

import java.util.concurrent.CompletionException;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.common.protocol.Errors;

/** A client. What it still had to do when its process ended, or was suspended, is not done (`inLife`). */
abstract class Member {
    final Simulation simulation;
    final String group;
    String host = "10.0.0.1";
    String instance;

    private boolean running;
    private int life;

    Member(Simulation simulation, String group) {
        this.simulation = simulation;
        this.group = group;
    }

    /** A new process. */
    final void start() {
        running = true;
        life++;
        begin();
    }

    final boolean isRunning() {
        return running;
    }

    /** Closes as its client does. */
    final void leave() {
        if (running) {
            kill();
            sayGoodbye();
        }
    }

    /** The process ends, or is suspended: nothing more is sent. */
    final void kill() {
        running = false;
        life++;
    }

    /** The client ends with an error that it does not get over. */
    final void giveUp() {
        kill();
        simulation.gaveUp.accept(this);
    }

    /** A suspended process goes on, with all that it believed. */
    final void resume() {
        running = true;
        life++;
        goOn();
    }

    final void inLife(long ms, Runnable what) {
        int of = life;
        simulation.in(ms, () -> {
            if (running && of == life) {
                what.run();
            }
        });
    }

    /** About every so often as long as the process lives. */
    final void every(long ms, Runnable what) {
        inLife(ms + simulation.chance.nextInt(20), () -> {
            what.run();
            every(ms, what);
        });
    }

    /** The answer to a request, or what its refusal comes to. */
    static <T> T orFailed(Supplier<T> request, Function<Errors, T> failed) {
        try {
            return request.get();
        } catch (RuntimeException refused) {
            Throwable cause = refused instanceof CompletionException ? refused.getCause() : refused;
            return failed.apply(Errors.forException(cause));
        }
    }

    abstract void begin();

    abstract void goOn();

    abstract void sayGoodbye();
}
