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
public final class Ranges extends RDD {
  /** Ranges to ask for while one is read. AheadMemory bounds their bytes. */
  private static final int MOST_AHEAD = 8;

  private final YtClientConfiguration conf;
  private final StructType schema;
  private final String consumer;
  private final String queue;
  private final Partition[] ranges;
  /** By partition: which one is the last of the task that reads it, and how many tasks read all; see gather(). */
  private int[] last;
  private int tasks;

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

  /**
   * Say that {@code tasks} tasks will read {@code all} partitions, of which these begin at {@code first}: each a run of
   * neighbours, as Spark groups them (DefaultPartitionCoalescer). A wrong guess costs requests and no rows.
   */
  public void gather(int first, int all, int tasks) {
    int[] found = new int[ranges.length];
    for (int task = 0; task < tasks; task++) {
      int from = Math.max((int) ((long) task * all / tasks) - first, 0);
      int to = Math.min((int) ((task + 1L) * all / tasks) - first, ranges.length);
      for (int i = from; i < to; i++) found[i] = to - 1;
    }
    last = found;
    this.tasks = tasks;
  }

  public Iterator compute(Partition split, TaskContext task) {
    int index = split.index();
    Ahead ahead = Ahead.of(task);
    RangeRows found = ahead.take(key(index));
    if (found == null) {
      found = ahead.closing(rows(index));
      found.ask();
    }
    if (isGathered(task)) askAhead(ahead, index);
    return found;
  }

  /** Whether the task reads more ranges: a second reading of the batch has a task for each of them. */
  private boolean isGathered(TaskContext task) {
    return last != null && task.numPartitions() == tasks;
  }

  private void askAhead(Ahead ahead, int index) {
    for (int next = index + 1; next <= Math.min(last[index], index + MOST_AHEAD); next++) {
      if (ahead.has(key(next))) continue;
      RangeRows rows = ahead.closing(rows(next));
      if (!rows.askAhead()) return;
      ahead.put(key(next), rows);
    }
  }

  private String key(int index) {
    return id() + "/" + index;
  }

  private RangeRows rows(int index) {
    return new RangeRows(YtClientProvider$.MODULE$.ytClient(conf), consumer, queue, (YtQueueRange) ranges[index], schema);
  }
}
