package ytstream;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.Serializable;
import java.util.ArrayList;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.LongAccumulator;
import scala.Option;
import tech.ytsaurus.client.ApiServiceTransaction;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.core.tables.TableSchema;
import tech.ytsaurus.rpcproxy.ERowModificationType;
import tech.ytsaurus.spyt.streaming.StreamingTxContext;
import tech.ytsaurus.spyt.streaming.YtStreamingTransactionContext;
import tech.ytsaurus.spyt.wrapper.client.YtClientConfiguration;
import tech.ytsaurus.spyt.wrapper.client.YtClientConfigurationConverter;
import tech.ytsaurus.spyt.wrapper.client.YtClientProvider$;
import tech.ytsaurus.ysontree.YTreeBinarySerializer;

/** Writes the rows of an output: what each task does with its part of them. */
public final class Output implements Serializable {
  /** Rows of a request are cut at this size, too: several small ones go faster than a large one. */
  static final int REQUEST_BYTES = 6 << 20;

  private final YtClientConfiguration conf;
  private final String path;
  private final byte[] table;
  private final StructType schema;
  private final int most;
  private final int tablets;
  /** Which column of a row says that it is deleted; -1: none. */
  private final int deleted;
  /** The batch's transaction; null without one. */
  private final String transaction;
  /** What sends the rows that tasks reject; null: they come to the driver. */
  private final RejectedRows rejected;
  /** Nanoseconds of all tasks: until their rows were there, and in all. */
  private final LongAccumulator making;
  private final LongAccumulator all;
  /** Those of this task. */
  private long made;
  /** Of this thread's writes since take(). */
  private static final ThreadLocal SPENT = new ThreadLocal();

  private Output(YtClientConfiguration conf, String path, byte[] table, StructType schema, int most, int tablets,
      int deleted, String transaction, RejectedRows rejected, LongAccumulator making, LongAccumulator all) {
    this.making = making;
    this.all = all;
    this.conf = conf;
    this.path = path;
    this.table = table;
    this.schema = schema;
    this.most = most;
    this.tablets = tablets;
    this.deleted = deleted;
    this.transaction = transaction;
    this.rejected = transaction == null ? null : rejected;
  }

  /**
   * Write all rows, in the transaction that SPYT has opened for the batch of this thread if there is one. A request
   * brings up to {@code most} rows to one tablet; without the batch's transaction, a transaction has so many.
   * {@code tablets} are those of a table without a key, 0 for any other: without an index in the rows, all rows of a
   * request go to one tablet at random (YTsaurus, native transaction.cpp). A row that is true in the column {@code deleted}
   * is deleted; no column is empty. {@code rejected}, or null, takes the rows that tasks reject while they write.
   *
   * Return what was added to sums; null if the table adds up nothing. With {@code isExact} each key is named in it.
   */
  public static Sums write(RDD rows, StructType schema, String path, TableSchema table, int most, int tablets, String deleted,
      boolean isExact, RejectedRows rejected) {
    YtClientConfiguration conf = YtClientConfigurationConverter.ytClientConfiguration(rows.sparkContext().getConf());
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    YTreeBinarySerializer.serialize(table.toYTree(), out);
    Option opened = YtStreamingTransactionContext.get();
    StreamingTxContext batch = opened.isEmpty() ? null : (StreamingTxContext) opened.get();
    if (batch != null && batch.stickyAddress().isDefined()) conf = pinned(conf, batch.stickyAddress());
    long begun = System.nanoTime();
    LongAccumulator making = new LongAccumulator();
    LongAccumulator all = new LongAccumulator();
    making.register(rows.sparkContext(), Option.empty(), false);
    all.register(rows.sparkContext(), Option.empty(), false);
    Output output = new Output(
        conf, path, out.toByteArray(), schema, most, tablets, deleted.isEmpty() ? -1 : schema.fieldIndex(deleted),
        batch == null ? null : batch.txId(), rejected, making, all);
    Sums sums = null;
    if (Totals.has(table)) add(rows, output, Sums.few(isExact, rows.getNumPartitions()), sums = new Sums(conf, rows.sparkContext(), path, table));
    else Writing.run(rows, output);
    long[] spent = SPENT.get() == null ? new long[2] : (long[]) SPENT.get();
    long wall = System.nanoTime() - begun;
    spent[0] += wall;
    if (all.sum() > 0) spent[1] += (long) (wall * (double) (all.sum() - making.sum()) / all.sum());
    SPENT.set(spent);
    return sums;
  }

  private static void add(RDD rows, Output output, long few, Sums sums) {
    for (Object task : rows.toJavaRDD().mapPartitions(new Adding(output, few)).collect()) sums.add((Added) task);
  }

  /**
   * Return how many nanoseconds this thread has waited for its writes since the last call, and the part of them in which
   * tasks waited for the cluster and not for rows.
   */
  public static long[] take() {
    long[] spent = SPENT.get() == null ? new long[2] : (long[]) SPENT.get();
    SPENT.set(null);
    return spent;
  }

  /** A transaction of tablets lives on one proxy. */
  static YtClientConfiguration pinned(YtClientConfiguration conf, Option proxy) {
    return conf.copy(conf.proxy(), conf.user(), conf.token(), conf.timeout(), conf.proxyRole(), conf.extendedFileTimeout(),
        conf.proxyNetworkName(), conf.useCommonProxies(), proxy, conf.retry());
  }

  /** Write the rows of a task. */
  void writePart(java.util.Iterator rows) throws Exception {
    long begun = System.nanoTime();
    try {
      if (rejected != null) rejected.begin(conf, transaction);
      send(rows);
      if (rejected != null) rejected.finish();
    } finally {
      if (rejected != null) rejected.end();
      making.add(made);
      all.add(System.nanoTime() - begun);
    }
  }

  /** Return whether there are more rows; the first one may take as long as all. */
  private boolean more(java.util.Iterator rows) {
    long begun = System.nanoTime();
    boolean more = rows.hasNext();
    made += System.nanoTime() - begun;
    return more;
  }

  private void send(java.util.Iterator rows) throws Exception {
    if (!more(rows)) return;
    CompoundClient yt = YtClientProvider$.MODULE$.ytClient(conf);
    TableSchema to = TableSchema.fromYTree(YTreeBinarySerializer.deserialize(new ByteArrayInputStream(table)));
    Encoder encoder = new Encoder(to, schema, tablets, TaskContext.getPartitionId());
    TableSchema written = Encoder.written(to, tablets);
    if (transaction == null) writeBlocks(rows, yt, encoder, written);
    else writeInto(rows, Attached.to(transaction, yt), encoder, written);
  }

  /**
   * Add the rows of a task to totals, each key once. Nothing is sent a second time: in one transaction that would be
   * added, too (YTsaurus, tablet_request_batcher.cpp). A request whose reply is lost fails the task, and with it the batch.
   */
  Added added(java.util.Iterator rows, long few) throws Exception {
    if (transaction == null) throw new IllegalStateException(path + " has totals, and there is no transaction to add in");
    TableSchema to = TableSchema.fromYTree(YTreeBinarySerializer.deserialize(new ByteArrayInputStream(table)));
    Totals totals = new Totals(to);
    try {
      if (rejected != null) rejected.begin(conf, transaction);
      add(rows, totals, to);
      if (rejected != null) rejected.finish();
    } finally {
      if (rejected != null) rejected.end();
    }
    return totals.added(few);
  }

  private void add(java.util.Iterator rows, Totals totals, TableSchema to) throws Exception {
    if (!rows.hasNext()) return;
    Encoder encoder = new Encoder(to, schema, 0, 0);
    while (rows.hasNext()) totals.add(encoder.alone((InternalRow) rows.next()), 8);
    CompoundClient yt = YtClientProvider$.MODULE$.ytClient(conf);
    ApiServiceTransaction batch = Attached.to(transaction, yt);
    Flight flight = new Flight();
    while (totals.hasNext()) {
      Rowset request = totals.request(path, to, most, REQUEST_BYTES);
      flight.room(request.bytes.length);
      flight.add(batch.modifyRows(request), request.bytes.length);
    }
    flight.land();
  }

  private void writeInto(java.util.Iterator rows, ApiServiceTransaction batch, Encoder encoder, TableSchema to)
      throws Exception {
    int many = (int) Math.min(Integer.MAX_VALUE, Math.max(1L, tablets) * most);
    Flight flight = new Flight();
    while (more(rows)) {
      Rowset request = request(rows, encoder, to, many);
      flight.room(request.bytes.length);
      flight.add(batch.modifyRows(request), request.bytes.length);
    }
    if (rejected != null) rejected.flush();
    flight.land();
  }

  private void writeBlocks(java.util.Iterator rows, CompoundClient yt, Encoder encoder, TableSchema to)
      throws Exception {
    while (more(rows)) {
      Block block = new Block(yt);
      try {
        for (int left = most; left > 0 && more(rows); ) {
          Rowset request = request(rows, encoder, to, left);
          left -= request.getRowModificationTypes().size();
          block.send(request);
        }
        block.commit();
      } finally {
        block.close();
      }
    }
  }

  private Rowset request(java.util.Iterator rows, Encoder encoder, TableSchema to, int most) {
    long begun = System.nanoTime();
    ArrayList kinds = deleted < 0 ? null : new ArrayList();
    while (rows.hasNext() && encoder.rows() < most && encoder.size() < REQUEST_BYTES) {
      InternalRow row = (InternalRow) rows.next();
      boolean isDeleted = kinds != null && row.getBoolean(deleted);
      if (isDeleted) encoder.addKey(row);
      else encoder.add(row);
      if (kinds != null) kinds.add(isDeleted ? ERowModificationType.RMT_DELETE : ERowModificationType.RMT_WRITE);
    }
    int count = encoder.rows();
    byte[] bytes = encoder.finish();
    Rowset request = kinds == null ? new Rowset(path, to, count, bytes) : new Rowset(path, to, kinds, bytes);
    made += System.nanoTime() - begun;
    return request;
  }
}
