package ytstream;

import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;
import tech.ytsaurus.spyt.streaming.YtQueueRange;
import tech.ytsaurus.spyt.wrapper.client.YtClientConfiguration;
import tech.ytsaurus.spyt.wrapper.client.YtClientConfigurationConverter;
import tech.ytsaurus.spyt.wrapper.client.YtClientProvider$;

/** The rows of a micro-batch of one queue: the ranges that SPYT's RDD has planned, read by RangeRows. */
final class Ranges extends RDD {
  private final YtClientConfiguration conf;
  private final StructType schema;
  private final String consumer;
  private final String queue;
  private final Partition[] ranges;

  Ranges(RDD planned, StructType schema, String consumer, String queue) {
    // The constructor with one parent: that with a list of them takes another Seq in each Scala.
    super(planned, ClassTag$.MODULE$.apply(InternalRow.class));
    conf = YtClientConfigurationConverter.ytClientConfiguration(planned.sparkContext().hadoopConfiguration());
    this.schema = schema;
    this.consumer = consumer;
    this.queue = queue;
    ranges = planned.partitions();
  }

  public Partition[] getPartitions() {
    return ranges;
  }

  public Iterator compute(Partition split, TaskContext task) {
    YtQueueRange range = (YtQueueRange) split;
    if (range.upperIndex() == range.lowerIndex()) return scala.collection.Iterator$.MODULE$.empty();
    return new RangeRows(YtClientProvider$.MODULE$.ytClient(conf), consumer, queue, range, schema);
  }
}
