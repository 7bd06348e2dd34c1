package ytstream;

import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.execution.streaming.SerializedOffset;
import tech.ytsaurus.spyt.streaming.YtQueueOffset;
import tech.ytsaurus.spyt.streaming.YtQueueOffset$;

/**
 * Where a batch began that is executed again: SPYT begins the first batch of a query where the consumer is, which has
 * gone on (YtStreamingSource, getLastCommittedOffset). The consumer stays where it is.
 */
public final class Replay {
  private static final ConcurrentHashMap OFFSETS = new ConcurrentHashMap();

  private Replay() {}

  /** Begin the batches of a queue at an offset of Spark's log. */
  public static void begin(String queue, String offset) {
    OFFSETS.put(queue, offset);
  }

  /** Begin where the consumers are, as ever. */
  public static void end() {
    OFFSETS.clear();
  }

  static YtQueueOffset of(String queue) {
    String offset = (String) OFFSETS.get(queue);
    return offset == null ? null : YtQueueOffset$.MODULE$.apply(SerializedOffset.apply(offset));
  }
}
