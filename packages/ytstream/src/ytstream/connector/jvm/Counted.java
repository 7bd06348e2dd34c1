package ytstream;

import java.lang.reflect.Method;
import java.util.ArrayList;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.util.AccumulatorV2;
import scala.Option;
import scala.collection.Iterator;

/**
 * What an execution has counted, in one call. Python would need hundreds for it in each batch, to go from operator to
 * operator: a tenth of a second.
 */
public final class Counted {
  private Counted() {}

  /**
   * Return the sums of metrics over all operators, with spaces between them; 0 where no operator has it. In front of a
   * metric may be the operator that it is of, and a dot.
   */
  public static String metrics(QueryExecution execution, String names) {
    String[] all = names.split(" ");
    long[] sums = new long[all.length];
    ArrayList operators = operators(execution);
    for (int i = 0; i < operators.size(); i++) {
      SparkPlan operator = (SparkPlan) operators.get(i);
      scala.collection.Map known = operator.metrics();
      for (int n = 0; n < all.length; n++) {
        int dot = all[n].indexOf('.');
        if (dot >= 0 && !all[n].substring(0, dot).equals(operator.getClass().getSimpleName())) continue;
        Option found = known.get(all[n].substring(dot + 1));
        if (found.isDefined()) sums[n] += ((Number) ((AccumulatorV2) found.get()).value()).longValue();
      }
    }
    StringBuilder text = new StringBuilder();
    for (int n = 0; n < sums.length; n++) text.append(n == 0 ? "" : " ").append(sums[n]);
    return text.toString();
  }

  /** Return the oldest event time that a watermark has seen, in milliseconds; empty without a watermark. */
  public static String oldestEventTime(QueryExecution execution) throws ReflectiveOperationException {
    long oldest = 0;
    boolean isThere = false;
    ArrayList operators = operators(execution);
    for (int i = 0; i < operators.size(); i++) {
      Object operator = operators.get(i);
      // Spark 4.1 has moved the class into another package.
      if (!operator.getClass().getSimpleName().equals("EventTimeWatermarkExec")) continue;
      Object seen = ((AccumulatorV2) called(operator, "eventTimeStats")).value();
      long first = ((Number) called(seen, "min")).longValue();
      oldest = isThere ? Math.min(oldest, first) : first;
      isThere = true;
    }
    return isThere ? String.valueOf(oldest) : "";
  }

  private static ArrayList operators(QueryExecution execution) {
    ArrayList all = new ArrayList();
    all.add(execution.executedPlan());
    for (int i = 0; i < all.size(); i++) {
      for (Iterator each = ((SparkPlan) all.get(i)).children().iterator(); each.hasNext(); ) all.add(each.next());
    }
    return all;
  }

  private static Object called(Object object, String name) throws ReflectiveOperationException {
    Method method = object.getClass().getMethod(name, new Class[0]);
    return method.invoke(object, new Object[0]);
  }
}
