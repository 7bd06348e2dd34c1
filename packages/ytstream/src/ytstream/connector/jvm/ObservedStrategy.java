package ytstream;

import java.util.ArrayList;
import java.util.Collections;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.plans.logical.CollectMetrics;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.PlanLater;
import org.apache.spark.sql.execution.SparkStrategy;

/** Plans what the runtime observes as ObservedExec, and leaves to Spark what users observe. */
public final class ObservedStrategy extends SparkStrategy {
  /** More columns would make the generated code of a stage with lines too long for Java's compiler (8,000 bytes). */
  private static final int MOST_COLUMNS = 40;

  private final String ours;
  private final String rejected;

  private ObservedStrategy(String ours, String rejected) {
    this.ours = ours;
    this.rejected = rejected;
  }

  /** Let a session plan so; before a query of a stream starts. Observations are ours by the beginning of their names. */
  public static synchronized void install(ExperimentalMethods session, String ours, String rejected) {
    ArrayList all = Lookup.list(session.extraStrategies());
    for (Object each : all) if (each instanceof ObservedStrategy) return;
    all.add(new ObservedStrategy(ours, rejected));
    session.extraStrategies_$eq(Lookup.sequence(all));
  }

  public scala.collection.immutable.Seq apply(LogicalPlan plan) {
    ObservedExec.Metrics metrics = plan instanceof CollectMetrics ? metrics((CollectMetrics) plan) : null;
    if (metrics == null) return Lookup.sequence(Collections.emptyList());
    CollectMetrics node = (CollectMetrics) plan;
    return Lookup.sequence(Collections.singletonList(new ObservedExec(node.name(), metrics, new PlanLater(node.child()))));
  }

  private ObservedExec.Metrics metrics(CollectMetrics node) {
    boolean isRejected = node.name().equals(rejected);
    if (!isRejected && !node.name().startsWith(ours)) return null;
    return isRejected && node.output().size() > MOST_COLUMNS ? null : ObservedExec.Metrics.of(node.metrics());
  }
}
