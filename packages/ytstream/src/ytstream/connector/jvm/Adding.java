package ytstream;

import java.util.Collections;
import java.util.Iterator;
import org.apache.spark.api.java.function.FlatMapFunction;

/** Adds the rows of a task to totals: what Output does, and what there is to tell of it. */
public final class Adding implements FlatMapFunction {
  private final Output output;

  Adding(Output output) {
    this.output = output;
  }

  public Iterator call(Object part) throws Exception {
    return Collections.singletonList(output.added((Iterator) part)).iterator();
  }
}
