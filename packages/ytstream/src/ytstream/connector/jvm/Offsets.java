package ytstream;

import java.util.ArrayList;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.util.Try;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.client.request.AdvanceConsumer;
import tech.ytsaurus.core.GUID;
import tech.ytsaurus.core.cypress.YPath;
import tech.ytsaurus.spyt.streaming.YtQueueOffset;
import tech.ytsaurus.spyt.streaming.YtQueueOffsetProvider;
import tech.ytsaurus.spyt.streaming.YtQueueOffsetProvider$;

/** Offsets of a queue and of its consumer, as SPYT asks for them; the consumer moves for all partitions at once. */
final class Offsets implements YtQueueOffsetProvider {
  private static final long TIMEOUT_SECONDS = 300;

  public Try getMaxOffset(String cluster, String queue, CompoundClient yt) {
    return YtQueueOffsetProvider$.MODULE$.getMaxOffset(cluster, queue, yt);
  }

  public YtQueueOffset getCurrentOffset(String cluster, String consumer, String queue, CompoundClient yt) {
    return YtQueueOffsetProvider$.MODULE$.getCurrentOffset(cluster, consumer, queue, yt);
  }

  /**
   * Move the consumer in the batch's transaction, under the conditions of YtQueueOffset.advance. Without a transaction
   * the runtime itself has moved it, together with the ledger's head: SPYT would move it a second time, a batch later.
   */
  public Option advance(String consumer, YtQueueOffset to, YtQueueOffset last, Option most, Option transaction, CompoundClient yt) {
    if (!to.$greater$eq(last)) return Option.empty();
    if (most.isDefined() && !((YtQueueOffset) most.get()).$greater$eq(to)) return Option.empty();
    if (transaction.isDefined()) {
      ArrayList sent = new ArrayList();
      for (Iterator each = to.partitions().iterator(); each.hasNext(); ) {
        Tuple2 partition = (Tuple2) each.next();
        long row = ((Long) partition._2()).longValue() + 1;
        if (row > 0) {
          sent.add(yt.advanceConsumer(AdvanceConsumer.builder()
              .setConsumerPath(YPath.simple(consumer))
              .setQueuePath(YPath.simple(to.path()))
              .setPartitionIndex(((Integer) partition._1()).intValue())
              .setNewOffset(row)
              .setTransactionId(GUID.valueOf((String) transaction.get()))
              .build()));
        }
      }
      joined(sent);
    }
    return Option.apply(to);
  }

  /** Wait for all requests: what one of them leaves undone would be committed with the others. */
  private static void joined(ArrayList sent) {
    CompletableFuture[] all = (CompletableFuture[]) sent.toArray(new CompletableFuture[0]);
    try {
      CompletableFuture.allOf(all).get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    } catch (Exception error) {
      throw new RuntimeException("the consumer was not moved in all partitions", error);
    }
  }
}
