package ytstream;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.core.tables.TableSchema;
import tech.ytsaurus.spyt.wrapper.client.YtClientConfiguration;
import tech.ytsaurus.spyt.wrapper.client.YtClientConfigurationConverter;
import tech.ytsaurus.spyt.wrapper.client.YtClientProvider$;
import tech.ytsaurus.ysontree.YTreeBinarySerializer;
import tech.ytsaurus.ysontree.YTreeNode;

/**
 * Writes the rows of an archive: each task writes a static table for each period that its rows have. All of them are
 * under the master transaction of the batch, so what a task has written that was repeated is in no list and goes. A task
 * with few rows hands them to the driver, which writes a table of those of all tasks: tables of archives keep these chunks.
 */
public final class Pieces implements FlatMapFunction, Serializable {
  /** A request is cut at this size: a task may write to as many tables as a batch has periods. */
  private static final int REQUEST_BYTES = 2 << 20;

  private final YtClientConfiguration conf;
  private final byte[] attributes;
  private final StructType schema;
  /** Where parts are written, and the transaction. */
  private final String folder;
  private final String transaction;
  /** The column of the time, and the length of a period. */
  private final int by;
  private final long seconds;
  /** Periods that begin before or after these, and those that end up to the last one, are skipped. */
  private final long oldest;
  private final long newest;
  private final long refused;
  /** More tables are not written. */
  private final int most;
  /** How many bytes a task hands to the driver. */
  private final int handed;

  private Pieces(YtClientConfiguration conf, byte[] attributes, StructType schema, String folder, String transaction, int by,
      long seconds, long oldest, long newest, long refused, int most, int handed) {
    this.conf = conf;
    this.attributes = attributes;
    this.schema = schema;
    this.folder = folder;
    this.transaction = transaction;
    this.by = by;
    this.seconds = seconds;
    this.oldest = oldest;
    this.newest = newest;
    this.refused = refused;
    this.most = most;
    this.handed = handed;
  }

  /**
   * Write all rows; return what was written and what was not, a line each: `part BEGIN NAME ROWS BYTES` of a table,
   * `skip REASON ROWS` of rows.
   */
  public static String write(RDD rows, StructType schema, YTreeNode attributes, String folder, String transaction, String by,
      long seconds, long oldest, long newest, long refused, int most, int handed) throws Exception {
    YtClientConfiguration conf = YtClientConfigurationConverter.ytClientConfiguration(rows.sparkContext().getConf());
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    YTreeBinarySerializer.serialize(attributes, out);
    Pieces pieces = new Pieces(conf, out.toByteArray(), schema, folder, transaction, schema.fieldIndex(by), seconds, oldest,
        newest, refused, most, handed / Math.max(1, rows.getNumPartitions()));
    StringBuilder lines = new StringBuilder();
    TreeMap few = new TreeMap();
    for (Object task : rows.toJavaRDD().mapPartitions(pieces).collect()) {
      Object[] made = (Object[]) task;
      lines.append((String) made[0]);
      for (Object begin : ((Map) made[1]).keySet()) {
        if (!few.containsKey(begin)) few.put(begin, new ArrayList());
        ((List) few.get(begin)).add(((Map) made[1]).get(begin));
      }
    }
    for (Object begin : few.keySet()) lines.append(pieces.gathered((Long) begin, (List) few.get(begin)));
    return lines.toString();
  }

  /** Write what tasks have handed over of a period; return the line of the table. */
  private String gathered(Long begin, List blocks) throws Exception {
    YTreeNode given = YTreeBinarySerializer.deserialize(new ByteArrayInputStream(attributes));
    PieceWriter to = writer(YtClientProvider$.MODULE$.ytClient(conf), given, begin + ".driver", null);
    try {
      for (Object block : blocks) to.addBlock((byte[]) block);
      return to.closed(begin);
    } catch (Exception error) {
      to.cancel();
      throw error;
    }
  }

  private PieceWriter writer(CompoundClient yt, YTreeNode given, String name, Encoder encoder) {
    return new PieceWriter(yt, given, folder + "/" + name, name, transaction, encoder);
  }

  public Iterator call(Object part) throws Exception {
    Iterator rows = (Iterator) part;
    Object made = rows.hasNext() ? written(rows) : new Object[] {"", new TreeMap()};
    return Collections.singletonList(made).iterator();
  }

  /** Return the lines of a task, and the rows that it hands over, by the beginning of their period. */
  private Object[] written(Iterator rows) throws Exception {
    YTreeNode given = YTreeBinarySerializer.deserialize(new ByteArrayInputStream(attributes));
    TableSchema table = TableSchema.fromYTree(given.mapNode().getOrThrow("schema"));
    CompoundClient yt = YtClientProvider$.MODULE$.ytClient(conf);
    Period period = new Period(schema.apply(by).dataType(), by, seconds);
    TreeMap open = new TreeMap();
    long[] skipped = new long[Period.REASONS.length];
    try {
      while (rows.hasNext()) {
        InternalRow row = (InternalRow) rows.next();
        int reason = period.skipped(row, oldest, newest, refused);
        if (reason >= 0) {
          skipped[reason]++;
          continue;
        }
        Long begin = Long.valueOf(period.begin());
        PieceWriter to = (PieceWriter) open.get(begin);
        if (to == null) {
          if (open.size() == most) throw new IllegalStateException("ytstream: too many periods in a batch");
          String name = begin + "." + TaskContext.get().taskAttemptId();
          open.put(begin, to = writer(yt, given, name, new Encoder(table, schema, 0, 0)));
        }
        to.add(row, REQUEST_BYTES);
      }
      StringBuilder lines = new StringBuilder();
      TreeMap few = new TreeMap();
      int left = handed;
      for (Object begin : open.keySet()) {
        PieceWriter to = (PieceWriter) open.get(begin);
        byte[] block = to.taken(left);
        if (block != null) {
          left -= block.length;
          few.put(begin, block);
        } else {
          lines.append(to.closed((Long) begin));
        }
      }
      for (int i = 0; i < skipped.length; i++) {
        if (skipped[i] > 0) lines.append("skip ").append(Period.REASONS[i]).append(' ').append(skipped[i]).append('\n');
      }
      return new Object[] {lines.toString(), few};
    } catch (Exception error) {
      for (Object writer : open.values()) ((PieceWriter) writer).cancel();
      throw error;
    }
  }
}
