import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/**
 * Lets in who shows a token as Amazon MSK wants it: a URL presigned by Signature Version 4 for kafka-cluster:Connect, in
 * base64url. It knows one account, whose access key, secret key, region and principal the broker's properties name. The
 * signature is computed here from AWS' description, without AWS' code.
 */
public final class MskSignatures implements AuthenticateCallbackHandler {
    private static final DateTimeFormatter SIGNED_AT =
            DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC);

    private Map<String, ?> properties;

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
        properties = configs;
    }

    @Override
    public void handle(Callback[] callbacks) {
        for (Callback callback : callbacks) {
            if (callback instanceof OAuthBearerValidatorCallback validated) {
                try {
                    validated.token(judged(validated.tokenValue()));
                } catch (Exception refused) {
                    validated.error("invalid_token", null, null);
                }
            }
        }
    }

    @Override
    public void close() { }

    private OAuthBearerToken judged(String token) throws Exception {
        URI url = URI.create(new String(Base64.getUrlDecoder().decode(token), StandardCharsets.UTF_8));
        Map<String, String> query = new TreeMap<>();
        for (String pair : url.getRawQuery().split("&")) {
            String[] parts = pair.split("=", 2);
            query.put(decoded(parts[0]), decoded(parts[1]));
        }
        String region = option("region");
        String[] scope = query.get("X-Amz-Credential").split("/");
        String signature = query.remove("X-Amz-Signature");
        query.remove("User-Agent"); // added after the signature was made
        Instant begins = SIGNED_AT.parse(query.get("X-Amz-Date"), Instant::from);
        Instant ends = begins.plusSeconds(Long.parseLong(query.get("X-Amz-Expires")));
        Instant now = Instant.now();
        if (!url.getHost().equals("kafka." + region + ".amazonaws.com")
                || !query.get("Action").equals("kafka-cluster:Connect")
                || !query.get("X-Amz-Algorithm").equals("AWS4-HMAC-SHA256")
                || !query.get("X-Amz-SignedHeaders").equals("host")
                || !scope[0].equals(option("accessKey"))
                || !scope[2].equals(region)
                || now.isBefore(begins.minusSeconds(60))
                || now.isAfter(ends)
                || !signed(query, scope, url.getHost()).equals(signature)) {
            throw new SecurityException("not signed by an account that is known");
        }
        return new Accepted(token, option("principal"), begins.toEpochMilli(), ends.toEpochMilli());
    }

    /** Signature Version 4 of a request with an empty body, its query sorted and encoded as it asks for. */
    private String signed(Map<String, String> query, String[] scope, String host) throws Exception {
        StringBuilder sorted = new StringBuilder();
        query.forEach((name, value) -> sorted.append(sorted.isEmpty() ? "" : "&")
                .append(encoded(name)).append('=').append(encoded(value)));
        String request = String.join("\n", "GET", "/", sorted, "host:" + host, "", "host", hash(""));
        String about = String.join("/", List.of(scope).subList(1, scope.length));
        String text = String.join("\n", "AWS4-HMAC-SHA256", query.get("X-Amz-Date"), about, hash(request));
        byte[] key = ("AWS4" + option("secretKey")).getBytes(StandardCharsets.UTF_8);
        for (String part : List.of(scope).subList(1, scope.length)) {
            key = hmac(key, part);
        }
        return HexFormat.of().formatHex(hmac(key, text));
    }

    private String option(String name) {
        return (String) properties.get("test.msk." + name);
    }

    private static byte[] hmac(byte[] key, String text) throws Exception {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String hash(String text) throws Exception {
        return HexFormat.of().formatHex(
                MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8)));
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
    }

    private record Accepted(String value, String principalName, long begins, long lifetimeMs)
            implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Set.of();
        }

        @Override
        public Long startTimeMs() {
            return begins;
        }
    }
}
