package org.apache.kafka.coordinator.group;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;

/**
 * Random lawful histories: members come and go, processes die or are suspended, groups are rolled from protocol to protocol,
 * coordinators move. An hour of the lives of two to five groups.
 *
 * <p>A request is a line "SEED KIND FILE"; KIND is `plain`, `old` (subscriptions of older versions) or `clocks` (those of the
 * brokers are set). The recording goes into the file. The answer says what was done, as a line of JSON: {"records": n, "groups":
 * {name: kind}, "phases": {name: phase at the end}, "done": [[ms, group, what, of whom or null, next offset]]}.
 */
public final class LawfulHistories {
    private static final int SECOND = 1_000;
    private static final int MINUTE = 60_000;
    private static final int END = 50 * MINUTE;
    private static final int QUIET = 15 * MINUTE;
    private static final int MOST = 5;
    private static final List<Supplier<ConsumerPartitionAssignor>> ASSIGNORS =
        List.of(RangeAssignor::new, CooperativeStickyAssignor::new, StickyAssignor::new);
    /** How many of these brokers let go over to the consumer protocol: the others give data of their own. */
    private static final int UPGRADED = 2;

    private final Simulation simulation;
    private final Random chance;
    private final boolean old;
    private final Map<String, String> groups = new LinkedHashMap<>();
    private final Map<String, String> phases = new LinkedHashMap<>();
    private final List<List<Object>> done = new ArrayList<>();

    private LawfulHistories(long seed, boolean old) {
        SeededChance.begin(seed);
        simulation = new Simulation(seed);
        chance = new Random(seed * 31 + 7);
        this.old = old;
        simulation.gaveUp = of -> note(of.group, "gave_up", of.instance);
        simulation.removed = of -> note(of.group, "removed", of.instance);
    }

    public static void main(String[] arguments) throws IOException {
        SeededChance.install();
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // nothing that logs may speak between the answers
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ObjectMapper json = new ObjectMapper();
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] asked = line.split(" ", 3);
            LawfulHistories history = new LawfulHistories(Long.parseLong(asked[0]), asked[1].equals("old"));
            answers.println(json.writeValueAsString(history.written(asked[1].equals("clocks"), Path.of(asked[2]))));
            answers.flush();
        }
    }

    private Map<String, Object> written(boolean clocksAreSet, Path file) throws IOException {
        int orders = 2 + chance.nextInt(10);
        simulation.topic("orders", orders);
        simulation.topic("pay", 1 + chance.nextInt(6));
        simulation.topic("app-a", 3);
        simulation.topic("app-b", 2);
        simulation.topic("app-0-changelog", orders);
        if (chance.nextInt(4) == 0) {
            simulation.set("group.consumer.assignment.interval.ms", chance.nextInt(5_000));
        }
        int count = 2 + chance.nextInt(4);
        for (int number = 0; number < count; number++) {
            open("g" + number);
        }
        int moves = chance.nextInt(4);
        for (int number = 0; number < moves; number++) {
            simulation.at(sometime(2 * MINUTE, END - 2 * MINUTE), () -> {
                note("", "moved", null);
                simulation.failOver();
            });
        }
        if (chance.nextInt(4) == 0) {
            simulation.at(sometime(5 * MINUTE, 35 * MINUTE), () -> {
                note("", "records_lost", null);
                simulation.loseBatches(1 + chance.nextInt(3));
            });
        }
        if (clocksAreSet) {
            setClocks();
        }
        simulation.clock(30 * SECOND, END + QUIET);
        simulation.run(END + QUIET);
        Long liveFrom = chance.nextInt(3) == 0 && simulation.records() > 20 ? (long) chance.nextInt(simulation.records()) : null;
        simulation.write(file, liveFrom);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("records", simulation.records());
        answer.put("groups", groups);
        answer.put("phases", phases);
        answer.put("done", done);
        return answer;
    }

    private void open(String group) {
        List<String> topics = chance.nextInt(3) == 0 ? List.of("orders") : List.of("orders", "pay");
        switch (chance.nextInt(8)) {
            case 0 -> changing(group, "consumer", () -> consumer(group, topics, null));
            case 1, 2 -> {
                Supplier<ConsumerPartitionAssignor> assignor = ASSIGNORS.get(chance.nextInt(ASSIGNORS.size()));
                changing(group, assignor.get().name(), () -> classic(group, topics, assignor.get(), null));
            }
            case 3 -> changing(group, "expression", expressions(group));
            case 4 -> rolled(group, topics, chance.nextBoolean());
            case 5 -> restarted(group, topics);
            case 6 -> changing(group, "streams", applications(group));
            default -> changing(group, "share", () -> new ShareMember(simulation, group, topics));
        }
    }

    // --- members

    private ConsumerMember consumer(String group, List<String> topics, String instance) {
        ConsumerMember made = new ConsumerMember(simulation, group, topics);
        made.instance = instance;
        made.revokeMs = chance.nextInt(3) == 0 ? chance.nextInt(100 * SECOND) : chance.nextInt(800);
        made.commitEveryMs = 20 * SECOND + chance.nextInt(40 * SECOND);
        made.assignor = chance.nextInt(3) == 0 ? "range" : null;
        made.host = "10.0.0." + (1 + chance.nextInt(5));
        return made;
    }

    private ClassicMember classic(String group, List<String> topics, ConsumerPartitionAssignor assignor, String instance) {
        ClassicMember made = new ClassicMember(simulation, group, topics, assignor);
        made.instance = instance;
        made.pollMs = chance.nextInt(4) == 0 ? chance.nextInt(20 * SECOND) : chance.nextInt(500);
        made.assignMs = chance.nextInt(5) == 0 ? chance.nextInt(3 * SECOND) : chance.nextInt(40);
        made.revokeMs = chance.nextInt(400);
        made.commitEveryMs = 20 * SECOND + chance.nextInt(40 * SECOND);
        made.sessionMs = chance.nextBoolean() ? 45 * SECOND : 10 * SECOND;
        if (old) {
            made.version = (short) chance.nextInt(4);
        }
        return made;
    }

    private Supplier<Member> expressions(String group) {
        return () -> {
            ConsumerMember made = consumer(group, chance.nextInt(3) == 0 ? List.of("pay") : null, null);
            made.regex = chance.nextBoolean() ? "app-[ab]" : "(app-a|orders)";
            return made;
        };
    }

    private Supplier<Member> applications(String group) {
        boolean stateful = chance.nextBoolean();
        if (stateful) {
            simulation.setOfGroup(group, "streams.num.standby.replicas", "1");
        }
        return () -> {
            StreamsMember made = new StreamsMember(simulation, group, List.of("orders"));
            made.stateful = stateful;
            made.revokeMs = chance.nextInt(9 * SECOND);
            return made;
        };
    }

    // --- what happens to a group

    /** Members come, leave, die and come again, or are suspended for up to a minute and a half. */
    private void changing(String group, String kind, Supplier<Member> made) {
        groups.put(group, kind);
        List<Member> alive = new ArrayList<>();
        int first = 1 + chance.nextInt(MOST);
        for (int number = 0; number < first; number++) {
            Member member = made.get();
            alive.add(member);
            simulation.at(chance.nextInt(20 * SECOND), member::start);
        }
        int deeds = chance.nextInt(14);
        for (int number = 0; number < deeds; number++) {
            int deed = chance.nextInt(5);
            simulation.at(sometime(MINUTE, END), () -> change(group, deed, alive, made));
        }
    }

    private void change(String group, int deed, List<Member> alive, Supplier<Member> made) {
        if (deed > 1 && alive.isEmpty()) {
            return;
        }
        Member some = alive.isEmpty() ? null : alive.get(chance.nextInt(alive.size()));
        switch (deed) {
            case 2 -> {
                alive.remove(some);
                note(group, "left", null);
                some.leave();
            }
            case 3 -> {
                alive.remove(some);
                some.kill();
                note(group, "died", null);
                simulation.in(chance.nextInt(60 * SECOND), () -> {
                    Member next = made.get();
                    alive.add(next);
                    next.start();
                });
            }
            case 4 -> {
                alive.remove(some); // nothing else happens to it meanwhile
                some.kill();
                note(group, "suspended", null);
                simulation.in(chance.nextInt(90 * SECOND), () -> {
                    alive.add(some);
                    note(group, "resumed", null);
                    some.resume();
                });
            }
            default -> {
                Member next = made.get();
                alive.add(next);
                next.start();
            }
        }
    }

    /** Member after member goes over to the other protocol, up to three times. */
    private void rolled(String group, List<String> topics, boolean isStatic) {
        Supplier<ConsumerPartitionAssignor> assignor = ASSIGNORS.get(chance.nextInt(UPGRADED));
        Function<String, Member> before = instance -> classic(group, topics, assignor.get(), instance);
        Function<String, Member> after = instance -> consumer(group, topics, instance);
        int count = 1 + chance.nextInt(MOST);
        int rolls = 1 + chance.nextInt(3);
        int stepMs = 5 * SECOND + chance.nextInt(60 * SECOND);
        boolean overlap = !isStatic && chance.nextBoolean();
        groups.put(group, "roll of " + assignor.get().name() + (isStatic ? ", static" : ""));
        phases.put(group, rolls % 2 == 1 ? "upgraded" : "downgraded");
        for (int number = 0; number < count; number++) {
            String instance = isStatic ? "pod-" + number : null;
            Member now = before.apply(instance);
            simulation.at(number * 900 + chance.nextInt(900), now::start);
            for (int roll = 0; roll < rolls; roll++) {
                int when = 3 * MINUTE + roll * 14 * MINUTE + number * stepMs + chance.nextInt(2 * SECOND);
                boolean isUp = roll % 2 == 0;
                Member next = (isUp ? after : before).apply(instance);
                boolean crashes = chance.nextInt(5) == 0;
                Member former = now;
                int awayMs = chance.nextInt(20 * SECOND);
                simulation.at(overlap ? when + 3 * SECOND + awayMs : when, () -> {
                    if (crashes) {
                        note(group, "died", instance);
                        former.kill();
                    } else {
                        close(group, former, instance);
                    }
                });
                simulation.at(overlap ? when : when + 200 + awayMs, () -> {
                    note(group, isUp ? "rolled_up" : "rolled_down", instance);
                    next.start();
                });
                now = next;
            }
        }
    }

    /** Static members are restarted; some are away for longer than their session. */
    private void restarted(String group, List<String> topics) {
        int kind = chance.nextInt(ASSIGNORS.size() + 1);
        Function<String, Member> made = kind == ASSIGNORS.size()
            ? instance -> consumer(group, topics, instance)
            : instance -> classic(group, topics, ASSIGNORS.get(kind).get(), instance);
        groups.put(group, "static, " + (kind == ASSIGNORS.size() ? "consumer" : ASSIGNORS.get(kind).get().name()));
        int count = 1 + chance.nextInt(MOST);
        for (int number = 0; number < count; number++) {
            String instance = "pod-" + number;
            Member[] now = {made.apply(instance)};
            simulation.at(number * 500 + chance.nextInt(400), now[0]::start);
            int restarts = chance.nextInt(3);
            for (int restart = 0; restart < restarts; restart++) {
                int awayMs = 500 + chance.nextInt(chance.nextBoolean() ? 8 * SECOND : 80 * SECOND);
                simulation.at(sometime(3 * MINUTE + restart * 15 * MINUTE, 13 * MINUTE + restart * 15 * MINUTE), () -> {
                    close(group, now[0], instance);
                    now[0] = made.apply(instance);
                    simulation.in(awayMs, now[0]::start);
                });
            }
        }
    }

    private void close(String group, Member member, String instance) {
        if (instance != null && member instanceof ConsumerMember && member.isRunning()) {
            note(group, "closed", instance);
        }
        member.leave();
    }

    // --- what happens to all

    /** A broker's clock is set forward by up to two hours, back by up to ten minutes, or right again. */
    private void setClocks() {
        int times = 1 + chance.nextInt(3);
        for (int number = 0; number < times; number++) {
            long aheadMs = switch (chance.nextInt(4)) {
                case 0 -> 0;
                case 1 -> chance.nextInt(120 * MINUTE);
                default -> -chance.nextInt(10 * MINUTE);
            };
            simulation.at(sometime(2 * MINUTE, END - 2 * MINUTE), () -> {
                note("", "clock_set", String.valueOf(aheadMs));
                simulation.clockIsAheadMs = aheadMs;
                if (chance.nextBoolean()) {
                    simulation.failOver();
                }
            });
        }
    }

    private int sometime(int fromMs, int untilMs) {
        return fromMs + chance.nextInt(untilMs - fromMs);
    }

    private void note(String group, String what, String who) {
        List<Object> of = new ArrayList<>();
        of.add(simulation.nowMs());
        of.add(group);
        of.add(what);
        of.add(who);
        of.add(simulation.nextOffset());
        done.add(of);
    }
}
