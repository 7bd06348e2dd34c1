package ytstream;

import java.lang.reflect.Field;
import java.util.Collections;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark$;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.state.StateStoreRDD;
import scala.Function2;
import scala.Option;
import scala.collection.Iterator;

/**
 * On top of Spark's StreamingDeduplicateWithinWatermarkExec, which goes through its whole state after each batch for the keys
 * that have expired. Here it sees a store that hides such keys (ExpiringStore), and removes them less often.
 *
 * Spark's operator stays in the plan: it has the name, the schema and the metrics of the state, and Spark looks for it there.
 */
public final class ExpiryExec extends SparkPlan {
  private final SparkPlan deduplication;

  public ExpiryExec(SparkPlan deduplication) {
    this.deduplication = deduplication;
  }

  public RDD doExecute() {
    RDD rows = deduplication.execute();
    if (!(rows instanceof StateStoreRDD)) return rows;
    try {
      // What it does with a store and the rows of a partition. The constructor differs from Spark to Spark.
      Field update = StateStoreRDD.class.getDeclaredField("storeUpdateFunction");
      update.setAccessible(true);
      Object inner = update.get(rows);
      if (!(inner instanceof Expiring)) update.set(rows, expiring((Function2) inner, rows.getNumPartitions()));
    } catch (ReflectiveOperationException missing) {
      // Another Spark. Its own operator keeps the promise as well: a key that is removed late is known for longer.
    }
    return rows;
  }

  private Expiring expiring(Function2 inner, int stores) throws ReflectiveOperationException {
    return new Expiring(
        inner,
        watermark("eventTimeWatermarkForLateEvents"),
        watermark("eventTimeWatermarkForEviction"),
        delay(),
        stores,
        deduplication.longMetric("numRemovedStateRows"));
  }

  private long watermark(String name) throws ReflectiveOperationException {
    Option found = (Option) deduplication.getClass().getMethod(name, new Class[0]).invoke(deduplication, new Object[0]);
    return ((Long) found.get()).longValue();
  }

  /** How long a key is known, in milliseconds: the delay of the watermark (Spark, delayThresholdMs). */
  private long delay() {
    String key = EventTimeWatermark$.MODULE$.delayKey();
    for (Iterator each = deduplication.output().iterator(); each.hasNext(); ) {
      Attribute column = (Attribute) each.next();
      if (column.metadata().contains(key)) return column.metadata().getLong(key);
    }
    throw new IllegalStateException("no column has the watermark");
  }

  // -- what Spark asks of an operator

  public scala.collection.immutable.Seq output() {
    return Lookup.sequence(Lookup.list(deduplication.output()));
  }

  public Partitioning outputPartitioning() {
    return deduplication.outputPartitioning();
  }

  public scala.collection.immutable.Seq children() {
    return Lookup.sequence(Collections.singletonList(deduplication));
  }

  public TreeNode withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return with((SparkPlan) children.apply(0));
  }

  /** Of Spark 3.5, whose Scala is 2.12. */
  public TreeNode withNewChildrenInternal(scala.collection.IndexedSeq children) {
    return with((SparkPlan) children.apply(0));
  }

  /** One is enough, where a rule is applied twice. */
  private static ExpiryExec with(SparkPlan child) {
    return child instanceof ExpiryExec ? (ExpiryExec) child : new ExpiryExec(child);
  }

  public Object productElement(int n) {
    return deduplication;
  }

  public int productArity() {
    return 1;
  }

  public boolean canEqual(Object other) {
    return other instanceof ExpiryExec;
  }

  public boolean equals(Object other) {
    return this == other || other instanceof ExpiryExec && deduplication.equals(((ExpiryExec) other).deduplication);
  }
}
