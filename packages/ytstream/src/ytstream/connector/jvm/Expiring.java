package ytstream;

import java.io.Serializable;
import java.lang.reflect.Proxy;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import scala.Function2;
import scala.runtime.AbstractFunction2;

/** What Spark's operator does with the store of a partition and its rows, with a store that hides expired keys. */
public final class Expiring extends AbstractFunction2 implements Serializable {
  /** A key is removed at the latest when it has been expired for this part of the time that it was known. */
  private static final int PARTS = 4;

  private final Function2 inner;
  private final long before;
  private final long now;
  private final long pause;
  private final int stores;
  private final SQLMetric removed;

  /**
   * Both watermarks are in milliseconds and of the offset log: the one by which the batch before has removed keys, and the
   * one of this batch. So a batch that runs again removes the same keys.
   */
  public Expiring(Function2 inner, long before, long now, long delay, int stores, SQLMetric removed) {
    this.inner = inner;
    this.before = before;
    this.now = now;
    this.pause = Math.max(1, delay / PARTS);
    this.stores = Math.max(1, stores);
    this.removed = removed;
  }

  public Object apply(Object store, Object rows) {
    StateStore given = (StateStore) store;
    boolean isDue = isDue(before, now, pause, given.id().partitionId(), stores);
    ExpiringStore hiding = new ExpiringStore(given, before * 1000, isDue, removed);
    Class[] types = new Class[] {StateStore.class};
    return inner.apply(Proxy.newProxyInstance(getClass().getClassLoader(), types, hiding), rows);
  }

  /**
   * Return whether a batch goes through a store: where the watermark passes a multiple of the pause, at another one for each
   * store. So a batch whose watermark moves little goes through one store or none.
   */
  static boolean isDue(long before, long now, long pause, int store, int stores) {
    long shift = pause * store / stores;
    return Math.floorDiv(now + shift, pause) > Math.floorDiv(before + shift, pause);
  }
}
