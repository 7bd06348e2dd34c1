package ytstream;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;

/**
 * The ranges that a task reads, and those that it has asked for before it comes to them. Spark reads the partitions of a
 * task one after the other, and a range of few rows takes a request's time: so the requests of the next ranges are under
 * way meanwhile.
 */
final class Ahead implements TaskCompletionListener {
  private static final ConcurrentHashMap TASKS = new ConcurrentHashMap();

  private final Long task;
  /** By the RDD and the partition, as text: the rows that were asked for ahead of time. */
  private final HashMap ranges = new HashMap();
  private final ArrayList open = new ArrayList();

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

  /** Close the rows when the task ends: it may fail, or need only some of them. */
  RangeRows closing(RangeRows rows) {
    for (Iterator each = open.iterator(); each.hasNext(); ) if (((RangeRows) each.next()).isRead()) each.remove();
    open.add(rows);
    return rows;
  }

  public void onTaskCompletion(TaskContext context) {
    TASKS.remove(task);
    for (Object rows : open) ((RangeRows) rows).close();
  }
}
