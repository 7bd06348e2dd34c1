package ytstream;

import java.io.Serializable;
import org.apache.spark.rdd.RDD;
import org.apache.spark.unsafe.Platform;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction2;

/**
 * What a task does with its rows. It has a class of its own, since Spark reads the code of a closure, which RDD.foreachPartition
 * makes, twice before each job: that takes as long as a request (SparkContext.clean, ClosureCleaner).
 */
final class Writing extends AbstractFunction2 implements Serializable {
  private final Output output;

  private Writing(Output output) {
    this.output = output;
  }

  static void run(RDD rows, Output output) {
    rows.sparkContext().runJob(rows, new Writing(output), ClassTag$.MODULE$.apply(Object.class));
  }

  public Object apply(Object task, Object rows) {
    try {
      output.writePart(new Rows((Iterator) rows));
    } catch (Exception error) {
      Platform.throwException(error); // as it is
    }
    return null;
  }

  private static final class Rows implements java.util.Iterator {
    private final Iterator rows;

    Rows(Iterator rows) {
      this.rows = rows;
    }

    public boolean hasNext() {
      return rows.hasNext();
    }

    public Object next() {
      return rows.next();
    }
  }
}
