package ytstream;

import org.apache.spark.sql.types.StructType;
import scala.collection.AbstractIterator;
import tech.ytsaurus.client.ApiServiceUtil;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.client.rpc.RpcClientResponse;
import tech.ytsaurus.rpcproxy.TRowsetDescriptor;
import tech.ytsaurus.rpcproxy.TRspPullQueueConsumer;
import tech.ytsaurus.spyt.streaming.YtQueueRange;

/**
 * The rows of one range of a tablet, in order. While the rows of a reply are handed out, the request for the rows after
 * it is under way.
 */
final class RangeRows extends AbstractIterator {
  /** Rows to ask for at once: two replies may be in memory. */
  private static final long PIECE = 50000;

  private final CompoundClient yt;
  private final String consumer;
  private final String queue;
  private final int tablet;
  private final Columns columns;
  private final WireRow row;
  /** The next row that was asked for, and the row after the last one of the range. */
  private long next;
  private final long end;
  private Pull coming;
  private int left;

  RangeRows(CompoundClient yt, String consumer, String queue, YtQueueRange range, StructType schema) {
    this.yt = yt;
    this.consumer = consumer;
    this.queue = queue;
    tablet = range.tabletIndex();
    next = range.lowerIndex();
    end = range.upperIndex();
    columns = new Columns(schema);
    row = new WireRow(columns);
    ask();
  }

  private void ask() {
    coming = next < end ? new Pull(yt, consumer, queue, tablet, next, Math.min(end - next, PIECE)) : null;
  }

  public boolean hasNext() {
    if (left == 0 && coming != null) left = arrived();
    return left > 0;
  }

  /** Wait for the rows that were asked for, ask for those after them, and return how many came. */
  private int arrived() {
    RpcClientResponse reply = coming.reply();
    TRowsetDescriptor descriptor = ((TRspPullQueueConsumer) reply.body()).getRowsetDescriptor();
    int[] ordinals = columns.ordinals(ApiServiceUtil.deserializeRowsetSchema(descriptor));
    int rows = row.open(Wire.joined(reply.attachments()), ordinals);
    if (rows == 0 || rows > end - next) {
      throw new IllegalStateException(rows + " rows came of " + queue + ", partition " + tablet + ", where "
          + (end - next) + " from row " + next + " were asked for");
    }
    next += rows;
    ask();
    return rows;
  }

  public Object next() {
    hasNext();
    left--;
    row.read();
    return row;
  }
}
