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
 * it is under way, if AheadMemory has room for them.
 */
final class RangeRows extends AbstractIterator {
  /** Rows to ask for at once, and the bytes of a reply: one that the task waits for is not in AheadMemory. */
  private static final long PIECE = 50000;
  private static final long PIECE_BYTES = 16L << 20;

  private final CompoundClient yt;
  private final String consumer;
  private final String queue;
  private final int tablet;
  private final Columns columns;
  private final WireRow row;
  /** The next row to ask for, and the row after the last one of the range. */
  private long next;
  private final long end;
  private Pull coming;
  private int left;
  /** Of AheadMemory, for the request under way. */
  private long reserved;
  private boolean isClosed;

  RangeRows(CompoundClient yt, String consumer, String queue, YtQueueRange range, StructType schema) {
    this.yt = yt;
    this.consumer = consumer;
    this.queue = queue;
    tablet = range.tabletIndex();
    next = range.lowerIndex();
    end = range.upperIndex();
    columns = new Columns(schema);
    row = new WireRow(columns);
  }

  /** Ask for the next rows, which the task needs now. */
  void ask() {
    if (next < end) ask(PIECE_BYTES);
  }

  /** Ask for the next rows before the task needs them; return whether there is memory for them. */
  synchronized boolean askAhead() {
    if (next == end) return true;
    if (isClosed) return false;
    // Room for rows twice as long as the last ones: a reply that is cut costs one more request.
    long bytes = overhead() + Math.max(overhead(), 2 * AheadMemory.rowBytes(queue));
    reserved = AheadMemory.reserve(Math.min(bytes * Math.min(end - next, PIECE), PIECE_BYTES));
    if (reserved > 0) ask(reserved);
    return reserved > 0;
  }

  /** Ask for as many rows as have room in so many bytes. The server counts only the data in them. */
  private void ask(long bytes) {
    long rows = Math.max(1, Math.min(Math.min(end - next, PIECE), bytes / 2 / overhead()));
    coming = new Pull(yt, consumer, queue, tablet, next, rows, Math.max(1, bytes - rows * overhead()));
  }

  /** The most bytes of a row on the wire that are not data; the server may send some columns of its own, too. */
  private long overhead() {
    return 8 + 16 * (columns.count + 4);
  }

  public boolean hasNext() {
    if (left == 0 && next < end) left = arrived();
    return left > 0;
  }

  /** Whether all rows were handed out. */
  boolean isRead() {
    return left == 0 && next == end;
  }

  /** Wait for the rows that were asked for, ask for those after them, and return how many came. */
  private int arrived() {
    if (coming == null) ask();
    RpcClientResponse reply = coming.reply();
    coming = null;
    free();
    TRowsetDescriptor descriptor = ((TRspPullQueueConsumer) reply.body()).getRowsetDescriptor();
    int[] ordinals = columns.ordinals(ApiServiceUtil.deserializeRowsetSchema(descriptor));
    byte[] rowset = Wire.joined(reply.attachments());
    int rows = row.open(rowset, ordinals);
    if (rows == 0 || rows > end - next) {
      throw new IllegalStateException(rows + " rows came of " + queue + ", partition " + tablet + ", where "
          + (end - next) + " from row " + next + " were asked for");
    }
    AheadMemory.learn(queue, rowset.length, rows);
    next += rows;
    askAhead();
    return rows;
  }

  private synchronized void free() {
    AheadMemory.free(reserved);
    reserved = 0;
  }

  /** The task has ended, maybe before the last row: free the memory of what is under way. */
  synchronized void close() {
    isClosed = true;
    free();
  }

  public Object next() {
    hasNext();
    left--;
    row.read();
    return row;
  }
}
