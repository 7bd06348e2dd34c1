package ytstream;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.HashSet;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import scala.collection.Iterator$;
import scala.runtime.AbstractFunction0;
import scala.runtime.BoxedUnit;

/**
 * A store of StreamingDeduplicateWithinWatermarkExec in which keys that have expired seem to be gone. Its values are the
 * times at which keys expire. What Spark would have removed after the previous batch is removed when a row with its key
 * arrives, or when a batch goes through the store. So the rows of a batch are those that Spark's operator alone would give.
 *
 * A proxy, since the methods of a store differ from Spark to Spark.
 */
final class ExpiringStore implements InvocationHandler {
  private final StateStore store;
  private final long expired;
  private final boolean isDue;
  private final SQLMetric removed;
  /** Keys of this batch that are expired when they come: of rows without a time. Within the batch they are known. */
  private final HashSet late = new HashSet();
  private Method get;
  private Method remove;

  ExpiringStore(StateStore store, long expired, boolean isDue, SQLMetric removed) {
    this.store = store;
    this.expired = expired;
    this.isDue = isDue;
    this.removed = removed;
  }

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    String name = method.getName();
    if (name.equals("keyExists")) return Boolean.valueOf(found(method, arguments) != null);
    if (name.equals("get")) return found(method, arguments);
    if (name.equals("put")) noticeLate((UnsafeRow) arguments[0], (UnsafeRow) arguments[1]);
    if (name.equals("iterator") && !isDue) {
      removeLate(arguments);
      return nothing(method.getReturnType());
    }
    return called(method, arguments);
  }

  private Object found(Method method, Object[] arguments) throws Throwable {
    if (get == null) get = StateStore.class.getMethod("get", method.getParameterTypes());
    UnsafeRow value = (UnsafeRow) called(get, arguments);
    if (value == null || value.getLong(0) > expired || late.contains(arguments[0])) return value;
    remove(arguments);
    return null;
  }

  private void noticeLate(UnsafeRow key, UnsafeRow value) {
    if (value.getLong(0) <= expired) late.add(key.copy());
  }

  /** Spark would do so after this batch. */
  private void removeLate(Object[] arguments) throws Throwable {
    for (Object key : late) {
      Object[] given = new Object[1 + (arguments == null ? 0 : arguments.length)];
      given[0] = key;
      if (given.length > 1) given[1] = arguments[0];
      remove(given);
    }
  }

  /** Remove a key; behind it is the name of the column family, which Spark has since 4.0. */
  private void remove(Object[] arguments) throws Throwable {
    if (remove == null) {
      Class[] types = new Class[arguments.length];
      types[0] = UnsafeRow.class;
      if (types.length > 1) types[1] = String.class;
      remove = StateStore.class.getMethod("remove", types);
    }
    called(remove, arguments);
    removed.add(1L);
  }

  private Object called(Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(store, arguments);
    } catch (InvocationTargetException error) {
      throw error.getTargetException();
    }
  }

  /** An iterator over nothing, of the type that this Spark wants. */
  private static Object nothing(Class type) throws ReflectiveOperationException {
    Object empty = Iterator$.MODULE$.empty();
    if (type.isInstance(empty)) return empty;
    return type.getConstructors()[0].newInstance(new Object[] {empty, new Nothing()});
  }

  private static final class Nothing extends AbstractFunction0 {
    public Object apply() {
      return BoxedUnit.UNIT;
    }
  }
}
