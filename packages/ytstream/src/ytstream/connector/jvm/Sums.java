package ytstream;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import tech.ytsaurus.client.ApiServiceUtil;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.client.request.GetNode;
import tech.ytsaurus.client.rpc.RpcClientResponse;
import tech.ytsaurus.core.cypress.YPath;
import tech.ytsaurus.core.tables.TableSchema;
import tech.ytsaurus.rpcproxy.TRowsetDescriptor;
import tech.ytsaurus.rpcproxy.TRspLookupRows;
import tech.ytsaurus.spyt.wrapper.client.YtClientConfiguration;
import tech.ytsaurus.spyt.wrapper.client.YtClientProvider$;

/**
 * What all tasks of a batch add to the sums of a table, and what the table has then: outputs/sum_bounds.py decides by it
 * whether a sum leaves its 64 bits. The table would wrap without an error (YTsaurus, udf/sum.c). Lives in the driver.
 */
public final class Sums {
  /** Tasks name the keys to which they add more than all of them together may leave unnamed: a part in 8192 of int64. */
  private static final long UNNAMED = 1L << 50;
  private static final int MOST_KEYS = 2000;

  private final YtClientConfiguration conf;
  private final SparkContext spark;
  private final String path;
  private final TableSchema table;
  private String[] names = new String[0];
  private BigInteger[] least;
  private BigInteger[] most;
  /** Key -> what is added to it, by sum. */
  private final HashMap named = new HashMap();

  Sums(YtClientConfiguration conf, SparkContext spark, String path, TableSchema table) {
    this.conf = conf;
    this.spark = spark;
    this.path = path;
    this.table = table;
  }

  /** Return how much a task may add to a key without naming it; 0 where all keys are looked at. */
  static long few(boolean isExact, int tasks) {
    return isExact ? 0 : UNNAMED / Math.max(1, tasks);
  }

  void add(Added task) {
    if (least == null) {
      names = task.names;
      least = zeros();
      most = zeros();
    }
    for (int i = 0; i < names.length; i++) {
      least[i] = least[i].add(BigInteger.valueOf(task.least[i]));
      most[i] = most[i].add(BigInteger.valueOf(task.most[i]));
    }
    for (int row = 0; row < task.keys.size(); row++) {
      ByteBuffer key = ByteBuffer.wrap((byte[]) task.keys.get(row));
      BigInteger[] known = (BigInteger[]) named.get(key);
      if (known == null) named.put(key, known = zeros());
      long[] sums = (long[]) task.sums.get(row);
      int[] beyond = (int[]) task.beyond.get(row);
      for (int i = 0; i < names.length; i++) {
        known[i] = known[i].add(BigInteger.valueOf(beyond[i]).shiftLeft(64)).add(BigInteger.valueOf(sums[i]));
      }
    }
  }

  private BigInteger[] zeros() {
    BigInteger[] found = new BigInteger[names.length];
    for (int i = 0; i < found.length; i++) found[i] = BigInteger.ZERO;
    return found;
  }

  /** Return a line for each sum: its name, the least and the most that is added to a key that no task, and that a task names. */
  public String added() {
    StringBuilder lines = new StringBuilder();
    for (int i = 0; i < names.length; i++) {
      Extremes all = new Extremes();
      for (Iterator each = named.entrySet().iterator(); each.hasNext(); ) {
        Map.Entry entry = (Map.Entry) each.next();
        all.see(((BigInteger[]) entry.getValue())[i], null);
      }
      lines.append(names[i]).append('\t').append(least[i]).append('\t').append(most[i])
          .append('\t').append(all.least).append('\t').append(all.most).append('\n');
    }
    return lines.toString();
  }

  /**
   * Return a line for each sum: its name, the least and the greatest total of the keys that tasks name, and these two keys.
   * The totals are those at the start of the batch's transaction, with what tasks have added to these keys.
   */
  public String totals() {
    Extremes[] found = new Extremes[names.length];
    for (int i = 0; i < found.length; i++) found[i] = new Extremes();
    if (!named.isEmpty()) look(found);
    StringBuilder lines = new StringBuilder();
    for (int i = 0; i < names.length; i++) {
      lines.append(names[i]).append('\t').append(found[i].least).append('\t').append(found[i].most)
          .append('\t').append(text(found[i].ofLeast)).append('\t').append(text(found[i].ofMost)).append('\n');
    }
    return lines.toString();
  }

  private void look(Extremes[] found) {
    CompoundClient yt = YtClientProvider$.MODULE$.ytClient(conf);
    GetNode request = (GetNode) ((GetNode.Builder) GetNode.builder().setPath(YPath.simple(path + "/@id"))).build();
    String id = ((tech.ytsaurus.ysontree.YTreeNode) yt.getNode(request).join()).stringValue();
    Moment moment = new Moment("the totals of " + path, id, Moments.started(conf), null, spark);
    StructType wanted = new StructType();
    for (int i = 0; i < names.length; i++) wanted = wanted.add(names[i], DataTypes.LongType);
    ArrayList keys = new ArrayList();
    for (Iterator each = named.keySet().iterator(); each.hasNext(); ) {
      keys.add(each.next());
      if (keys.size() < MOST_KEYS && each.hasNext()) continue;
      see(new Ask(yt, moment, table.toLookup(), wanted, rowset(keys), keys.size()).reply(), keys, found);
      keys.clear();
    }
  }

  private byte[] rowset(List keys) {
    int size = 8;
    for (Object key : keys) size = Math.addExact(size, 8 + ((ByteBuffer) key).capacity());
    ByteBuffer wire = ByteBuffer.wrap(new byte[size]).order(ByteOrder.LITTLE_ENDIAN);
    wire.putLong(keys.size());
    for (Object key : keys) wire.putLong(table.toLookup().getColumnsCount()).put(((ByteBuffer) key).array());
    return wire.array();
  }

  private void see(RpcClientResponse reply, List keys, Extremes[] found) {
    TRowsetDescriptor descriptor = ((TRspLookupRows) reply.body()).getRowsetDescriptor();
    TableSchema columns = ApiServiceUtil.deserializeRowsetSchema(descriptor);
    ByteBuffer wire = ByteBuffer.wrap(Wire.joined(reply.attachments())).order(ByteOrder.LITTLE_ENDIAN);
    if (wire.getLong() != keys.size()) throw new IllegalStateException("other rows came than were asked for of " + path);
    for (Object key : keys) {
      BigInteger[] total = (BigInteger[]) ((BigInteger[]) named.get(key)).clone();
      long values = wire.getLong();
      for (long value = 0; value < values; value++) { // -1: the table has no row of this key yet
        long header = wire.getLong();
        int type = Wire.type(header);
        if (type == Wire.NULL) continue;
        long number = wire.getLong();
        String name = columns.getColumnName(Wire.id(header));
        for (int i = 0; i < names.length; i++) if (names[i].equals(name)) total[i] = total[i].add(whole(type, number));
      }
      for (int i = 0; i < names.length; i++) found[i].see(total[i], (ByteBuffer) key);
    }
  }

  private static BigInteger whole(int type, long number) {
    return type == Wire.UINT64 ? new BigInteger(Long.toUnsignedString(number)) : BigInteger.valueOf(number);
  }

  /** Return a key as people read it. */
  private static String text(ByteBuffer key) {
    if (key == null) return "";
    StringBuilder text = new StringBuilder();
    ByteBuffer wire = ByteBuffer.wrap(key.array()).order(ByteOrder.LITTLE_ENDIAN);
    while (wire.hasRemaining()) {
      long header = wire.getLong();
      int type = Wire.type(header);
      if (text.length() > 0) text.append(", ");
      if (type == Wire.NULL) {
        text.append("null");
      } else if (type >= Wire.STRING) {
        byte[] bytes = new byte[Wire.aligned(Wire.length(header))];
        wire.get(bytes);
        text.append(new String(bytes, 0, Wire.length(header), StandardCharsets.UTF_8).replaceAll("\\p{Cntrl}", "?"));
      } else {
        long number = wire.getLong();
        if (type == Wire.DOUBLE) text.append(Double.longBitsToDouble(number));
        else if (type == Wire.BOOLEAN) text.append(number != 0);
        else text.append(whole(type, number));
      }
    }
    return text.toString();
  }

  /** The least and the greatest of some numbers, and of 0. */
  private static final class Extremes {
    private BigInteger least = BigInteger.ZERO;
    private BigInteger most = BigInteger.ZERO;
    private ByteBuffer ofLeast;
    private ByteBuffer ofMost;

    void see(BigInteger number, ByteBuffer key) {
      if (number.compareTo(least) < 0) {
        least = number;
        ofLeast = key;
      }
      if (number.compareTo(most) > 0) {
        most = number;
        ofMost = key;
      }
    }
  }
}
