package ytstream;

import java.util.HashMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Ranges that a task has asked for before it comes to them. Spark reads the partitions of a task one after the other, and
 * a range of few rows takes a request's time: so the requests of the next ranges are under way meanwhile.
 */
final class Ahead implements TaskCompletionListener {
  /** By task: the RDD and the partition, as text, and the rows. */
  private static final ConcurrentHashMap TASKS = new ConcurrentHashMap();

  private final Long task;
  private final HashMap ranges = new HashMap();

  private Ahead(Long task) {
    this.task = task;
  }

  static Ahead of(TaskContext context) {
    Long task = Long.valueOf(context.taskAttemptId());
    Ahead found = (Ahead) TASKS.get(task);
    if (found == null) {
      found = new Ahead(task);
      TASKS.put(task, found);
      context.addTaskCompletionListener(found);
    }
    return found;
  }

  boolean has(String range) {
    return ranges.containsKey(range);
  }

  void put(String range, RangeRows rows) {
    ranges.put(range, rows);
  }

  /** Return the rows of a range and forget them; null if they were not asked for. */
  RangeRows take(String range) {
    return (RangeRows) ranges.remove(range);
  }

  public void onTaskCompletion(TaskContext context) {
    TASKS.remove(task);
  }
}
