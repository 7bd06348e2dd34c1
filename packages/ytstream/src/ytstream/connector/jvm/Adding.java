package ytstream;

import java.util.Collections;
import java.util.Iterator;
import org.apache.spark.api.java.function.FlatMapFunction;

/** Adds the rows of a task to totals: what Output does, and what there is to tell of it. */
public final class Adding implements FlatMapFunction {
  private final Output output;
  private final long few;

  /** {@code few}: how much a task may add to a key without naming it. */
  Adding(Output output, long few) {
    this.output = output;
    this.few = few;
  }

  public Iterator call(Object part) throws Exception {
    return Collections.singletonList(output.added((Iterator) part, few)).iterator();
  }
}
