package ytstream;

import java.util.ArrayList;
import java.util.Arrays;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.AccumulatorV2;

/** What ObservedExec observes of the rows of a task, and then of all tasks: numbers, and the lines of few rows. */
public final class Tally extends AccumulatorV2 {
  /** By what is observed: how many rows, or a sum. */
  private long[] numbers;
  /** Whether a sum has a number, and whether it is beyond 64 bits. */
  private boolean[] has;
  private boolean[] isOver;
  /** The lines, and how many bytes of them all tasks may have. */
  private final Lines.Buffer lines = new Lines.Buffer();
  private final int all;

  Tally(int count, int all) {
    this.all = all;
    numbers = new long[count];
    has = new boolean[count];
    isOver = new boolean[count];
  }

  // -- generated code calls these

  public void count(int number) {
    numbers[number]++;
  }

  public void add(int number, long value) {
    long sum = numbers[number] + value;
    isOver[number] |= ((numbers[number] ^ sum) & (value ^ sum)) < 0;
    numbers[number] = sum;
    has[number] = true;
  }

  /** Add a line, unless those of the task are longer than so many bytes with it. */
  void line(byte[] text, int most) {
    lines.line(text, most);
  }

  /** Return the figures as try_sum(), count() and Lines give them. */
  Row row(ArrayList functions, StructType schema) {
    Object[] values = new Object[numbers.length];
    for (int i = 0; i < values.length; i++) {
      Object function = functions.get(i);
      if (function instanceof Lines) values[i] = Lines.key(lines.toByteArray());
      else if (!(function instanceof Sum) || has[i] && !isOver[i]) values[i] = Long.valueOf(numbers[i]);
    }
    return new GenericRowWithSchema(values, schema);
  }

  // -- what Spark asks of an accumulator

  public boolean isZero() {
    for (int i = 0; i < numbers.length; i++) if (numbers[i] != 0 || has[i]) return false;
    return lines.isEmpty();
  }

  public void reset() {
    Arrays.fill(numbers, 0);
    Arrays.fill(has, false);
    Arrays.fill(isOver, false);
    lines.clear();
  }

  public AccumulatorV2 copy() {
    Tally made = new Tally(numbers.length, all);
    made.merge(this);
    return made;
  }

  public void add(Object value) {
    throw new UnsupportedOperationException("only ObservedExec adds");
  }

  public void merge(AccumulatorV2 others) {
    Tally more = (Tally) others;
    for (int i = 0; i < numbers.length; i++) {
      boolean had = has[i];
      add(i, more.numbers[i]);
      has[i] = had | more.has[i];
      isOver[i] |= more.isOver[i];
    }
    lines.add(more.lines.toByteArray(), 0, all);
  }

  public Object value() {
    return Arrays.toString(numbers);
  }

  /** Of Spark 4: a task that is under way is not asked for its lines. */
  public boolean excludeFromHeartbeat() {
    return true;
  }
}
