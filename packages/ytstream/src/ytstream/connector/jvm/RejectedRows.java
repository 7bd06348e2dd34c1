package ytstream;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import tech.ytsaurus.client.ApiServiceTransaction;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.core.tables.TableSchema;
import tech.ytsaurus.spyt.wrapper.client.YtClientConfiguration;
import tech.ytsaurus.spyt.wrapper.client.YtClientProvider$;
import tech.ytsaurus.ysontree.YTreeBinarySerializer;

/**
 * Sends the rejected rows that a task finds while it writes an output, into the same transaction. A task that runs once more
 * sends the same rows under the same keys.
 */
public final class RejectedRows implements Serializable {
  private static final StructType COLUMNS = new StructType()
      .add("queue_id", DataTypes.StringType).add("tablet_index", DataTypes.LongType).add("row_index", DataTypes.LongType)
      .add("reason", DataTypes.StringType).add("row", DataTypes.StringType).add("time", DataTypes.LongType);
  /** That of the task that this thread runs, where it sends its rejected rows. */
  private static final ThreadLocal OF_TASK = new ThreadLocal();

  private final String path;
  private final byte[] table;
  private final UTF8String[] queues;
  private final UTF8String[] reasons;
  private final long time;
  private final int most;
  // Those of the task: each one has a copy of the object.
  private transient YtClientConfiguration conf;
  private transient String transaction;
  private transient TableSchema to;
  private transient Encoder encoder;
  private transient ApiServiceTransaction batch;
  private transient Flight flight;

  /**
   * {@code names} is JSON: a list of the queues and one of the reasons, whose numbers are in the lines. {@code time} goes into
   * each row, and up to {@code most} rows into a request.
   */
  public RejectedRows(String path, TableSchema table, String names, long time, int most) throws Exception {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    YTreeBinarySerializer.serialize(table.toYTree(), out);
    List lists = (List) new ObjectMapper().readValue(names, List.class);
    this.path = path;
    this.table = out.toByteArray();
    queues = texts((List) lists.get(0));
    reasons = texts((List) lists.get(1));
    this.time = time;
    this.most = most;
  }

  private static UTF8String[] texts(List from) {
    UTF8String[] found = new UTF8String[from.size()];
    for (int i = 0; i < found.length; i++) found[i] = UTF8String.fromString((String) from.get(i));
    return found;
  }

  /** Return whether the task of this thread sends the row of a line itself. */
  static boolean take(byte[] line) {
    RejectedRows rows = (RejectedRows) OF_TASK.get();
    if (rows == null) return false;
    try {
      rows.add(line);
    } catch (Exception error) {
      Platform.throwException(error); // as it is
    }
    return true;
  }

  /** Take the lines of this thread's task from now on. */
  void begin(YtClientConfiguration conf, String transaction) {
    this.conf = conf;
    this.transaction = transaction;
    OF_TASK.set(this);
  }

  /** Send the remaining rows after the last one, and do not wait: requests of the output are also under way. */
  void flush() throws Exception {
    if (encoder != null && encoder.rows() > 0) send();
  }

  /** Wait until all rows are there. */
  void finish() throws Exception {
    flush();
    if (flight != null) flight.land();
  }

  /** Take no lines of this thread any more, whatever has happened. */
  void end() {
    OF_TASK.set(null);
  }

  /** Add a row: the numbers of its queue, tablet, row and reason, and its JSON, behind a space each. */
  private void add(byte[] line) throws Exception {
    if (encoder == null) {
      to = TableSchema.fromYTree(YTreeBinarySerializer.deserialize(new ByteArrayInputStream(table)));
      encoder = new Encoder(to, COLUMNS, 0, 0);
      CompoundClient yt = YtClientProvider$.MODULE$.ytClient(conf);
      batch = Attached.to(transaction, yt);
      flight = new Flight();
    }
    long[] numbers = new long[4];
    int at = 0;
    for (int i = 0; i < numbers.length; i++, at++) {
      for (; line[at] != ' '; at++) numbers[i] = 10 * numbers[i] + line[at] - '0';
    }
    encoder.add(new GenericInternalRow(new Object[] {
      queues[(int) numbers[0]], Long.valueOf(numbers[1]), Long.valueOf(numbers[2]), reasons[(int) numbers[3]],
      UTF8String.fromBytes(line, at, line.length - at), Long.valueOf(time)
    }));
    if (encoder.rows() >= most || encoder.size() >= Output.REQUEST_BYTES) send();
  }

  private void send() throws Exception {
    int count = encoder.rows();
    Rowset request = new Rowset(path, to, count, encoder.finish());
    flight.room(request.bytes.length);
    flight.add(batch.modifyRows(request), request.bytes.length);
  }
}
