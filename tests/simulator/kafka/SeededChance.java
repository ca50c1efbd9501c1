package org.apache.kafka.coordinator.group;

import java.security.Provider;
import java.security.SecureRandomSpi;
import java.security.Security;
import java.util.Random;

/**
 * Where the JVM's secure randomness comes from: a seed. The coordinator makes up ids of classic members, by which assignors
 * order them, so without this one seed would make a different history each time.
 */
public final class SeededChance extends SecureRandomSpi {
    private static final long serialVersionUID = 1;
    private static final Random CHANCE = new Random();

    /** Before anything asks for randomness. */
    static void install() {
        Provider provider = new Provider("seeded", "1", "one history a seed") {
            private static final long serialVersionUID = 1;
        };
        provider.put("SecureRandom.Seeded", SeededChance.class.getName());
        Security.insertProviderAt(provider, 1);
    }

    static void begin(long seed) {
        CHANCE.setSeed(seed);
    }

    @Override
    protected void engineSetSeed(byte[] seed) {}

    @Override
    protected void engineNextBytes(byte[] bytes) {
        CHANCE.nextBytes(bytes);
    }

    @Override
    protected byte[] engineGenerateSeed(int count) {
        byte[] seed = new byte[count];
        CHANCE.nextBytes(seed);
        return seed;
    }
}
