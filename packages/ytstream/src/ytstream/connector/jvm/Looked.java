package ytstream;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import tech.ytsaurus.client.ApiServiceUtil;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.client.rpc.RpcClientResponse;
import tech.ytsaurus.core.tables.TableSchema;
import tech.ytsaurus.rpcproxy.TRowsetDescriptor;
import tech.ytsaurus.rpcproxy.TRspLookupRows;

/** The rows of a task with columns of a table: some requests are under way while the rows of one are handed out. */
final class Looked extends AbstractIterator {
  /** A piece ends when it has so many keys, rows, or bytes of rows. */
  private static final int MOST_KEYS = 2_000;
  private static final int MOST_ROWS = 16_000;
  private static final int MOST_BYTES = 4 << 20;
  /** Requests under way, and bytes of their rows and replies. */
  private static final int MOST_REQUESTS = 8;
  private static final long MOST_BYTES_AHEAD = 32L << 20;
  /** The first request for a table asks for few keys, and tells how large its rows are: a value has up to 16 MiB. */
  private static final int FIRST_KEYS = 8;
  /** Id of a table -> bytes of a row of it, as the last replies were. */
  private static final ConcurrentHashMap SIZES = new ConcurrentHashMap();

  private final Iterator rows;
  private final CompoundClient yt;
  private final LookupSpec spec;
  private final KeyRule[] rules;
  private final Moment moment;
  private final TableSchema keys;
  private final Encoder encoder;
  private final Columns columns;
  private final WireRow looked;
  /** Rows that the cache had; null where there is none. */
  private final Cache cache;
  private final Cache.Table table;
  private final WireRow known;
  private final GenericInternalRow none;
  private final GenericInternalRow yes = new GenericInternalRow(new Object[] {Boolean.TRUE});
  private final GenericInternalRow no = new GenericInternalRow(new Object[] {Boolean.FALSE});
  private final UnsafeRow row;
  private final JoinedRow both = new JoinedRow();
  private final JoinedRow all = new JoinedRow();
  private final StructType schema;
  /** For rows of the child that are no UnsafeRow; Spark's own operators give no others. Made when it is needed. */
  private UnsafeProjection unsafe;
  private final UnsafeProjection projection;
  private final ArrayDeque flight = new ArrayDeque();
  private final ArrayDeque free = new ArrayDeque();
  private Piece piece;
  private int[] offsets;
  private int next;
  private long ahead;

  Looked(Iterator rows, CompoundClient yt, LookupSpec spec, StructType schema, int[] on, StructType made, Moment moment) {
    this.rows = rows;
    this.yt = yt;
    this.spec = spec;
    this.moment = moment;
    keys = spec.keys();
    encoder = new Encoder(keys, named(schema, on, keys), 0, 0);
    columns = new Columns(spec.added);
    looked = new WireRow(columns);
    cache = moment.version == null || spec.cacheBytes == 0 ? null : Cache.of(spec.cacheBytes);
    table = cache == null ? null : cache.table(moment.version, spec.added);
    known = new WireRow(columns);
    none = new GenericInternalRow(spec.added.fields().length);
    row = new UnsafeRow(schema.fields().length);
    this.schema = schema;
    projection = UnsafeProjection.create(made);
    rules = new KeyRule[on.length];
    for (int i = 0; i < on.length; i++) {
      rules[i] = new KeyRule(keys.getColumnSchema(i), on[i], schema.fields()[on[i]].dataType(), spec.hasNullKeys);
    }
  }

  /** The row's columns under the names that the key columns have in the table. */
  private static StructType named(StructType schema, int[] on, TableSchema keys) {
    StructField[] old = schema.fields();
    StructField[] fields = new StructField[old.length];
    for (int i = 0; i < fields.length; i++) fields[i] = new StructField(" " + i, old[i].dataType(), true, Metadata.empty());
    for (int i = 0; i < on.length; i++) {
      fields[on[i]] = new StructField(keys.getColumnName(i), old[on[i]].dataType(), true, old[on[i]].metadata());
    }
    return new StructType(fields);
  }

  public boolean hasNext() {
    while (piece == null || next == piece.count) {
      if (piece != null) free.add(piece);
      fill();
      piece = (Piece) flight.poll();
      if (piece == null) return false;
      next = 0;
      arrive();
    }
    return true;
  }

  public Object next() {
    hasNext();
    int key = piece.key[next];
    WireRow source = key >= 0 ? looked : known;
    int offset = key >= 0 ? offsets[key] : Piece.knownAt(key);
    boolean isThere = offset >= 0;
    if (isThere) source.seek(offset);
    piece.point(row, next++);
    InternalRow made = both.apply(row, isThere ? (InternalRow) source : none);
    if (spec.hasFound) made = all.apply(made, isThere ? yes : no);
    return projection.apply(made);
  }

  private void fill() {
    while (flight.size() < MOST_REQUESTS && ahead < MOST_BYTES_AHEAD && rows.hasNext()) {
      Integer size = (Integer) SIZES.get(moment.table);
      if (size == null && !flight.isEmpty()) return;
      flight.add(gathered(size));
    }
  }

  private Piece gathered(Integer size) {
    Piece made = free.isEmpty() ? new Piece() : (Piece) free.poll();
    made.clear();
    int most = size == null ? FIRST_KEYS : Math.max(1, Math.min(MOST_KEYS, MOST_BYTES / size.intValue()));
    while (made.keys < most && made.count < MOST_ROWS && made.held() < MOST_BYTES && rows.hasNext()) add(made);
    made.bytes = made.held() + (size == null ? 0 : (long) made.keys * size.intValue());
    ahead += made.bytes;
    if (made.keys > 0) made.ask = new Ask(yt, moment, keys, spec.added, encoder.finish(), made.keys);
    return made;
  }

  private void add(Piece made) {
    InternalRow given = (InternalRow) rows.next();
    made.add(given instanceof UnsafeRow ? (UnsafeRow) given : unsafe(given));
    if (!hasKey(given)) return;
    moment.rows.add(1);
    int mark = encoder.size();
    encoder.add(given);
    byte[] keys = encoder.buffer();
    int end = encoder.size();
    int hash = Piece.hash(keys, mark, end);
    if (cache != null && cache.find(table.number, hash, keys, mark, end, made)) {
      moment.hits.add(1);
      encoder.back(mark);
    } else if (!made.isNew(keys, mark, end, hash)) {
      encoder.back(mark);
    }
  }

  private UnsafeRow unsafe(InternalRow given) {
    if (unsafe == null) unsafe = UnsafeProjection.create(schema);
    return unsafe.apply(given);
  }

  private boolean hasKey(InternalRow given) {
    for (int i = 0; i < rules.length; i++) if (!rules[i].allows(given)) return false;
    return true;
  }

  private void arrive() {
    ahead -= piece.bytes;
    offsets = null;
    if (cache != null && table.ordinals != null) known.open(piece.known, table.ordinals);
    if (piece.ask == null) {
      moment.missing.add(missing());
      return;
    }
    RpcClientResponse reply = landed(piece.ask);
    TRowsetDescriptor descriptor = ((TRspLookupRows) reply.body()).getRowsetDescriptor();
    byte[] rowset = Wire.joined(reply.attachments());
    int[] ordinals = columns.ordinals(ApiServiceUtil.deserializeRowsetSchema(descriptor));
    int count = looked.open(rowset, ordinals);
    if (count != piece.keys) {
      throw new IllegalStateException(count + " rows came for " + piece.keys + " keys of " + moment.title);
    }
    offsets = looked.offsets(count);
    moment.keys.add(count);
    moment.missing.add(missing());
    remember(rowset.length / count + 1);
    if (cache != null) keep(piece.ask.keys(), rowset, ordinals);
    piece.ask = null;
  }

  private RpcClientResponse landed(Ask ask) {
    long begun = System.nanoTime();
    try {
      return ask.reply();
    } finally {
      moment.waited.add(System.nanoTime() - begun);
    }
  }

  private long missing() {
    long count = 0;
    for (int i = 0; i < piece.count; i++) {
      int key = piece.key[i];
      if (key >= 0 ? offsets[key] < 0 : key == Piece.MISSING) count++;
    }
    return count;
  }

  /** Let the cache have the rows of a reply. */
  private void keep(byte[] asked, byte[] rowset, int[] ordinals) {
    if (table.ordinals == null) table.ordinals = ordinals;
    if (!Arrays.equals(table.ordinals, ordinals)) return;
    for (int key = 0; key < piece.keys; key++) {
      int begin = piece.begin(key);
      int end = piece.end(key);
      int last = offsets[key] < 0 ? -1 : looked.end(offsets[key]);
      cache.keep(table.number, Piece.hash(asked, begin, end), asked, begin, end, rowset, offsets[key], last);
    }
  }

  private void remember(int size) {
    Integer known = (Integer) SIZES.get(moment.table);
    SIZES.put(moment.table, Integer.valueOf(known == null ? size : (known.intValue() + size) / 2 + 1));
  }
}
