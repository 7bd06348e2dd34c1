package ytstream;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import tech.ytsaurus.client.ApiServiceClient;
import tech.ytsaurus.client.request.AdvanceConsumer;
import tech.ytsaurus.core.GUID;
import tech.ytsaurus.core.cypress.YPath;

/**
 * Moves a consumer in several partitions of a queue at once: a request for each, all under way together. A start moves one
 * partition at a time (connector/tablet_transactions.py).
 */
public final class Advance {
  private static final long TIMEOUT_SECONDS = 300;

  private Advance() {}

  /** Move it in a transaction of {@code yt}. {@code rows} is text, for a caller in Python: "0:120 1:80", partition and row. */
  public static void all(ApiServiceClient yt, String transaction, String consumer, String queue, String rows) {
    String[] parts = rows.split(" ");
    int[] partitions = new int[parts.length];
    long[] to = new long[parts.length];
    for (int i = 0; i < parts.length; i++) {
      int colon = parts[i].indexOf(':');
      partitions[i] = Integer.parseInt(parts[i].substring(0, colon));
      to[i] = Long.parseLong(parts[i].substring(colon + 1));
    }
    all(yt, transaction, consumer, queue, partitions, to, parts.length);
  }

  static void all(ApiServiceClient yt, String transaction, String consumer, String queue, int[] partitions, long[] to, int count) {
    CompletableFuture[] sent = new CompletableFuture[count];
    for (int i = 0; i < count; i++) {
      sent[i] = yt.advanceConsumer(AdvanceConsumer.builder()
          .setConsumerPath(YPath.simple(consumer))
          .setQueuePath(YPath.simple(queue))
          .setPartitionIndex(partitions[i])
          .setNewOffset(to[i])
          .setTransactionId(GUID.valueOf(transaction))
          .build());
    }
    // What one of them leaves undone would be committed with the others.
    try {
      CompletableFuture.allOf(sent).get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    } catch (ExecutionException error) {
      if (error.getCause() instanceof RuntimeException) throw (RuntimeException) error.getCause(); // the cluster's
      throw new RuntimeException(error.getCause());
    } catch (Exception error) {
      throw new RuntimeException("the consumer was not moved in all partitions of " + queue, error);
    }
  }
}
