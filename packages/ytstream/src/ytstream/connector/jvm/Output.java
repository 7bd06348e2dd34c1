package ytstream;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.Serializable;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.VoidFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import tech.ytsaurus.client.ApiServiceTransaction;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.core.tables.TableSchema;
import tech.ytsaurus.spyt.streaming.StreamingTxContext;
import tech.ytsaurus.spyt.streaming.YtStreamingTransactionContext;
import tech.ytsaurus.spyt.wrapper.YtWrapper;
import tech.ytsaurus.spyt.wrapper.client.YtClientConfiguration;
import tech.ytsaurus.spyt.wrapper.client.YtClientConfigurationConverter;
import tech.ytsaurus.spyt.wrapper.client.YtClientProvider$;
import tech.ytsaurus.ysontree.YTreeBinarySerializer;

/** Writes the rows of an output: what each task does with its part of them. */
public final class Output implements VoidFunction, Serializable {
  /** Rows of a request are cut at this size, too: several small ones go faster than a large one. */
  private static final int REQUEST_BYTES = 4 << 20;

  private final YtClientConfiguration conf;
  private final String path;
  private final byte[] table;
  private final StructType schema;
  private final int most;
  private final int tablets;
  /** The batch's transaction; null without one. */
  private final String transaction;

  private Output(YtClientConfiguration conf, String path, byte[] table, StructType schema, int most, int tablets,
      String transaction) {
    this.conf = conf;
    this.path = path;
    this.table = table;
    this.schema = schema;
    this.most = most;
    this.tablets = tablets;
    this.transaction = transaction;
  }

  /**
   * Write all rows, in the transaction that SPYT has opened for the batch of this thread if there is one. A request
   * brings up to {@code most} rows to one tablet; without the batch's transaction, a transaction has so many.
   * {@code tablets} are those of a table without a key, 0 for any other: without an index in the rows, all rows of a
   * request go to one tablet at random (YTsaurus, native transaction.cpp).
   */
  public static void write(RDD rows, StructType schema, String path, TableSchema table, int most, int tablets) {
    YtClientConfiguration conf = YtClientConfigurationConverter.ytClientConfiguration(rows.sparkContext().getConf());
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    YTreeBinarySerializer.serialize(table.toYTree(), out);
    Option opened = YtStreamingTransactionContext.get();
    StreamingTxContext batch = opened.isEmpty() ? null : (StreamingTxContext) opened.get();
    if (batch != null && batch.stickyAddress().isDefined()) conf = pinned(conf, batch.stickyAddress());
    rows.toJavaRDD().foreachPartition(
        new Output(conf, path, out.toByteArray(), schema, most, tablets, batch == null ? null : batch.txId()));
  }

  /** A transaction of tablets lives on one proxy. */
  static YtClientConfiguration pinned(YtClientConfiguration conf, Option proxy) {
    return conf.copy(conf.proxy(), conf.user(), conf.token(), conf.timeout(), conf.proxyRole(), conf.extendedFileTimeout(),
        conf.proxyNetworkName(), conf.useCommonProxies(), proxy, conf.retry());
  }

  public void call(Object part) throws Exception {
    java.util.Iterator rows = (java.util.Iterator) part;
    if (!rows.hasNext()) return;
    CompoundClient yt = YtClientProvider$.MODULE$.ytClient(conf);
    TableSchema to = TableSchema.fromYTree(YTreeBinarySerializer.deserialize(new ByteArrayInputStream(table)));
    Encoder encoder = new Encoder(to, schema, tablets, TaskContext.getPartitionId());
    TableSchema written = Encoder.written(to, tablets);
    if (transaction == null) writeBlocks(rows, yt, encoder, written);
    else writeInto(rows, YtWrapper.attachTransaction(transaction, false, Option.empty(), yt), encoder, written);
  }

  private void writeInto(java.util.Iterator rows, ApiServiceTransaction batch, Encoder encoder, TableSchema to)
      throws Exception {
    int many = (int) Math.min(Integer.MAX_VALUE, Math.max(1L, tablets) * most);
    Flight flight = new Flight();
    while (rows.hasNext()) {
      Rowset request = request(rows, encoder, to, many);
      flight.room(request.bytes.length);
      flight.add(batch.modifyRows(request), request.bytes.length);
    }
    flight.land();
  }

  private void writeBlocks(java.util.Iterator rows, CompoundClient yt, Encoder encoder, TableSchema to)
      throws Exception {
    while (rows.hasNext()) {
      Block block = new Block(yt);
      try {
        for (int left = most; left > 0 && rows.hasNext(); ) {
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
    while (rows.hasNext() && encoder.rows() < most && encoder.size() < REQUEST_BYTES) {
      encoder.add((InternalRow) rows.next());
    }
    int count = encoder.rows();
    return new Rowset(path, to, count, encoder.finish());
  }
}
