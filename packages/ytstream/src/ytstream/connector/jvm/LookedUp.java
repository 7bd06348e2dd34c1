package ytstream;

import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;
import tech.ytsaurus.spyt.wrapper.client.YtClientConfiguration;
import tech.ytsaurus.spyt.wrapper.client.YtClientConfigurationConverter;
import tech.ytsaurus.spyt.wrapper.client.YtClientProvider$;

/** Rows with columns of a table. It is made for each micro-batch, so it knows the batch's moment. */
public final class LookedUp extends RDD {
  private final YtClientConfiguration conf;
  private final RDD before;
  private final LookupSpec spec;
  private final StructType schema;
  private final int[] on;
  private final StructType made;
  private final Moment moment;

  LookedUp(RDD before, LookupSpec spec, StructType schema, int[] on, StructType made) {
    super(before, ClassTag$.MODULE$.apply(InternalRow.class));
    conf = YtClientConfigurationConverter.ytClientConfiguration(before.sparkContext().getConf());
    this.before = before;
    this.spec = spec;
    this.schema = schema;
    this.on = on;
    this.made = made;
    moment = Moments.of(conf, before.sparkContext(), spec);
  }

  public Partition[] getPartitions() {
    return before.partitions();
  }

  public Iterator compute(Partition split, TaskContext task) {
    Iterator rows = before.iterator(split, task);
    return new Looked(rows, YtClientProvider$.MODULE$.ytClient(conf), spec, schema, on, made, moment);
  }
}
