package ytstream;

import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.util.Try;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.spyt.streaming.YtQueueOffset;
import tech.ytsaurus.spyt.streaming.YtQueueOffsetProvider;
import tech.ytsaurus.spyt.streaming.YtQueueOffsetProvider$;

/** Offsets of a queue and of its consumer, as SPYT asks for them; the consumer moves for all partitions at once. */
final class Offsets implements YtQueueOffsetProvider {
  /** Where the last batch of this query has moved the consumer, in its transaction; a failed commit ends the query. */
  private YtQueueOffset moved;
  /** The ends of the queue as SPYT has asked for them last; null if it got no answer. */
  private YtQueueOffset most;

  public Try getMaxOffset(String cluster, String queue, CompoundClient yt) {
    Try asked = YtQueueOffsetProvider$.MODULE$.getMaxOffset(cluster, queue, yt);
    most = asked.isSuccess() ? (YtQueueOffset) asked.get() : null;
    return asked;
  }

  /** Return whether the queue has rows beyond a batch that was planned with these ends. */
  boolean goBeyond(Object planned) {
    return most != null && planned instanceof YtQueueOffset && !((YtQueueOffset) planned).$greater$eq(most);
  }

  /**
   * Return where the consumer is. After a batch in a transaction that is where the batch has moved it: the runtime
   * verifies this in the transaction of the next one (verify_head). SPYT would ask for it in four requests.
   */
  public YtQueueOffset getCurrentOffset(String cluster, String consumer, String queue, CompoundClient yt) {
    YtQueueOffset replayed = Replay.of(queue);
    if (replayed != null) return replayed;
    if (moved != null && moved.path().equals(queue)) return moved;
    return YtQueueOffsetProvider$.MODULE$.getCurrentOffset(cluster, consumer, queue, yt);
  }

  /**
   * Move the consumer in the batch's transaction, under the conditions of YtQueueOffset.advance. Without a transaction
   * the runtime itself has moved it, together with the ledger's head: SPYT would move it a second time, a batch later.
   */
  public Option advance(String consumer, YtQueueOffset to, YtQueueOffset last, Option most, Option transaction, CompoundClient yt) {
    if (!to.$greater$eq(last)) return Option.empty();
    if (most.isDefined() && !((YtQueueOffset) most.get()).$greater$eq(to)) return Option.empty();
    if (transaction.isDefined() && Replay.of(to.path()) == null) {
      int[] partitions = new int[to.partitions().size()];
      long[] rows = new long[partitions.length];
      int count = 0;
      for (Iterator each = to.partitions().iterator(); each.hasNext(); ) {
        Tuple2 partition = (Tuple2) each.next();
        long read = ((Long) partition._2()).longValue();
        if (read < 0) continue; // no row yet
        partitions[count] = ((Integer) partition._1()).intValue();
        rows[count++] = read + 1;
      }
      Advance.all(yt, (String) transaction.get(), consumer, to.path(), partitions, rows, count);
      moved = to;
    }
    return Option.apply(to);
  }
}
