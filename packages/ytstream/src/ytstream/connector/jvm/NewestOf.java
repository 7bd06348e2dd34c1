package ytstream;

import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;

/** Of rows that are sorted by key, one of each key. */
public final class NewestOf extends RDD {
  private final RDD before;
  private final scala.collection.immutable.List keys;
  private final SortOrder rank;
  private final int width;

  NewestOf(RDD before, scala.collection.immutable.List keys, SortOrder rank, int width) {
    super(before, ClassTag$.MODULE$.apply(InternalRow.class));
    this.before = before;
    this.keys = keys;
    this.rank = rank;
    this.width = width;
  }

  public Partition[] getPartitions() {
    return before.partitions();
  }

  public Iterator compute(Partition split, TaskContext task) {
    return new NewestRows(before.iterator(split, task), keys, rank, width);
  }
}
