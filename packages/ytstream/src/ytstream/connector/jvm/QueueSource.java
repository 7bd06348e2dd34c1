package ytstream;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.spyt.SparkAdapter;
import tech.ytsaurus.spyt.streaming.YtQueueRDD;
import tech.ytsaurus.spyt.streaming.YtStreamingSource;

/** SPYT's source, whose micro-batches are read by Ranges, and whose consumer moves as Offsets does it. */
final class QueueSource extends YtStreamingSource {
  private final SQLContext context;
  private final String consumer;
  private final String queue;
  private final Offsets offsets;

  QueueSource(SQLContext context, String consumer, String queue, YtStreamingSource plain, Map options) {
    this(context, consumer, queue, plain, options, new Offsets());
  }

  private QueueSource(
      SQLContext context, String consumer, String queue, YtStreamingSource plain, Map options, Offsets offsets) {
    super(context, consumer, queue, plain.schema(), options, offsets, plain.yt());
    this.context = context;
    this.consumer = consumer;
    this.queue = queue;
    this.offsets = offsets;
  }

  /** SPYT cuts each partition at the limit that Spark hands over (YtStreamingSource.latestOffset). */
  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
      org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit option) {
    org.apache.spark.sql.connector.read.streaming.Offset end = super.latestOffset(start, Pace.of(consumer, option));
    BacklogClock.planned(consumer, queue, offsets.goBeyond(end));
    return end;
  }

  public Dataset getBatch(Option start, Offset end) {
    Dataset planned = super.getBatch(start, end);
    RDD rdd = ((LogicalRDD) execution(planned).logical()).rdd();
    if (!(rdd instanceof YtQueueRDD)) return planned; // there are no rows
    RDD read = new Ranges(rdd, schema(), consumer, queue);
    return SparkAdapter.instance().createStreamingDataFrame(context, read.setName("yt"), schema());
  }

  /** By reflection: Spark 4 has the method in a subclass of Dataset that Spark 3.5 has not. */
  private static QueryExecution execution(Dataset rows) {
    try {
      return (QueryExecution) rows.getClass().getMethod("queryExecution", new Class[0]).invoke(rows, new Object[0]);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }
}
