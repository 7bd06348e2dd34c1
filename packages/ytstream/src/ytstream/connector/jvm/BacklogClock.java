package ytstream;

import java.lang.reflect.Field;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.util.Clock;
import org.apache.spark.util.SystemClock;

/**
 * The clock of a query's trigger, which waits for no tick while rows wait that the last batch was too small for. Spark's
 * own waits for the next multiple of the interval under a backlog, too (ProcessingTimeExecutor.execute).
 */
public final class BacklogClock implements Clock {
  /** The queues that have rows beyond the last planned batch, each after the name of its consumer. */
  private static final ConcurrentHashMap CUT = new ConcurrentHashMap();

  private final Clock plain = new SystemClock();
  private final String consumer;

  private BacklogClock(String consumer) {
    this.consumer = consumer;
  }

  /**
   * Give the trigger of a running query this clock. Called in a batch of the query, when the trigger is there. Spark
   * takes a clock for a query only inside of its own packages (StreamingQueryManager.startQuery).
   */
  public static void set(Object query, String consumer) throws ReflectiveOperationException {
    Object trigger = query.getClass().getMethod("triggerExecutor", new Class[0]).invoke(query, new Object[0]);
    Field clock = trigger.getClass().getDeclaredField("clock");
    clock.setAccessible(true);
    clock.set(trigger, new BacklogClock(consumer));
  }

  /** Remember whether rows wait beyond the end of the batch that was just planned. */
  static void planned(String consumer, String queue, boolean isCut) {
    String key = key(consumer, queue);
    if (isCut) CUT.put(key, Boolean.TRUE);
    else CUT.remove(key);
  }

  private static String key(String consumer, String queue) {
    return consumer + " " + queue;
  }

  private boolean isCut() {
    for (java.util.Iterator keys = CUT.keySet().iterator(); keys.hasNext(); )
      if (((String) keys.next()).startsWith(key(consumer, ""))) return true;
    return false;
  }

  public long waitTillTime(long target) {
    return isCut() ? getTimeMillis() : plain.waitTillTime(target);
  }

  public long getTimeMillis() {
    return plain.getTimeMillis();
  }

  public long nanoTime() {
    return plain.nanoTime();
  }
}
