package ytstream;

import java.util.Collections;
import org.apache.spark.sql.catalyst.expressions.BaseOrdering;
import org.apache.spark.sql.catalyst.expressions.RowOrdering;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.immutable.Nil$;

/** The rows of a task: of those with one key, which follow each other, the one with the greatest rank. */
final class NewestRows extends AbstractIterator {
  private final Iterator rows;
  private final UnsafeProjection keyOf;
  private final SortOrder rank;
  /** Made when two rows have one key: its code takes longer to write than many rows. */
  private BaseOrdering order;
  private final UnsafeRow newest;
  private final UnsafeRow key;
  /** The first row of the next key; the sort gives each row in the same object. */
  private UnsafeRow next;

  NewestRows(Iterator rows, scala.collection.immutable.List keys, SortOrder rank, int width) {
    this.rows = rows;
    keyOf = UnsafeProjection.create(keys);
    this.rank = rank;
    newest = UnsafeRow.createFromByteArray(0, width);
    key = UnsafeRow.createFromByteArray(0, keys.size());
  }

  public boolean hasNext() {
    return next != null || rows.hasNext();
  }

  public Object next() {
    newest.copyFrom(next != null ? next : (UnsafeRow) rows.next());
    key.copyFrom(keyOf.apply(newest));
    next = null;
    while (rows.hasNext()) {
      UnsafeRow row = (UnsafeRow) rows.next();
      if (!keyOf.apply(row).equals(key)) {
        next = row;
        break;
      }
      if (isNewer(row)) newest.copyFrom(row);
    }
    return newest;
  }

  private boolean isNewer(UnsafeRow row) {
    if (order == null) order = RowOrdering.create(Lookup.sequence(Collections.singletonList(rank)), Nil$.MODULE$);
    return order.compare(row, newest) > 0;
  }
}
