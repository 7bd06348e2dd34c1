package ytstream;

import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.SparkContext;
import scala.Option;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.client.request.GenerateTimestamps;
import tech.ytsaurus.client.request.GetNode;
import tech.ytsaurus.core.YtTimestamp;
import tech.ytsaurus.core.cypress.YPath;
import tech.ytsaurus.spyt.streaming.StreamingTxContext;
import tech.ytsaurus.spyt.streaming.YtStreamingTransactionContext;
import tech.ytsaurus.spyt.wrapper.client.YtClientConfiguration;
import tech.ytsaurus.spyt.wrapper.client.YtClientProvider$;
import tech.ytsaurus.ysontree.YTreeNode;

/**
 * The moment of the micro-batch under way: the start of its transaction; without one, a time of the cluster when the
 * batch begins. All lookups of the batch have it, in transform() and in outputs(). Lives in the driver.
 */
public final class Moments {
  /** Names a finished table of `make reference` (cluster/built_reference.py). */
  private static final String MARK = "ytstream_reference";

  private static String batch = "";
  private static long time;
  private static final TreeMap TAKEN = new TreeMap();

  private Moments() {}

  static synchronized Moment of(YtClientConfiguration conf, SparkContext spark, LookupSpec spec) {
    String now = underWay(spark);
    if (spec.timestamp > 0) return new Moment(spec.title(), spec.path.substring(1), spec.timestamp, null, spark); // #id
    if (now.isEmpty()) return taken(conf, spark, spec, started(conf)); // not a micro-batch: a replay, a preview, a test
    if (!now.equals(batch)) {
      TAKEN.clear();
      batch = "";
      time = started(conf);
      batch = now;
    }
    Moment known = (Moment) TAKEN.get(spec.name);
    if (known == null) {
      known = taken(conf, spark, spec, time);
      TAKEN.put(spec.name, known);
    }
    return known;
  }

  /**
   * Return what a micro-batch has looked up, a line for each reference: its name, the table's id, the timestamp, rows,
   * keys, rows whose key is missing, milliseconds of waiting, and rows that the cache had, with tabs in between.
   */
  public static synchronized String of(String run, long number) {
    StringBuilder lines = new StringBuilder();
    if (!batch.equals(run + " " + number)) return "";
    for (Iterator each = TAKEN.entrySet().iterator(); each.hasNext(); ) {
      Map.Entry entry = (Map.Entry) each.next();
      Moment one = (Moment) entry.getValue();
      lines.append(entry.getKey()).append('\t').append(one.table).append('\t').append(one.timestamp)
          .append('\t').append(one.rows.sum()).append('\t').append(one.keys.sum()).append('\t').append(one.missing.sum())
          .append('\t').append(one.waited.sum() / 1000000).append('\t').append(one.hits.sum()).append('\n');
    }
    return lines.toString();
  }

  /** The run of the query and the number of the batch (Spark, StreamExecution, MicroBatchExecution); empty outside. */
  private static String underWay(SparkContext spark) {
    String number = spark.getLocalProperty("streaming.sql.batchId");
    return number == null ? "" : spark.getLocalProperty("spark.jobGroup.id") + " " + number;
  }

  /** Return the start of the transaction of this thread's batch; without one, a time of the cluster. */
  static long started(YtClientConfiguration conf) {
    Option opened = YtStreamingTransactionContext.get();
    if (opened.isEmpty()) return generated(conf);
    StreamingTxContext context = (StreamingTxContext) opened.get();
    Option proxy = context.stickyAddress();
    CompoundClient yt = YtClientProvider$.MODULE$.ytClient(proxy.isDefined() ? Output.pinned(conf, proxy) : conf);
    return Attached.to(context.txId(), yt).getStartTimestamp().getValue();
  }

  private static long generated(YtClientConfiguration conf) {
    CompoundClient yt = YtClientProvider$.MODULE$.ytClient(conf);
    return ((YtTimestamp) yt.generateTimestamps(new GenerateTimestamps(1)).join()).getValue();
  }

  /** Find which table the path means now, as it must be for this lookup. */
  private static Moment taken(YtClientConfiguration conf, SparkContext spark, LookupSpec spec, long timestamp) {
    YTreeNode found = attributes(conf, spec);
    String problem = problem(found, spec, timestamp);
    if (problem != null) throw new IllegalStateException(spec.title() + " " + problem + ", so the batch is given up and runs again");
    String id = attribute(found, "id").stringValue();
    return new Moment(spec.title(), id, timestamp, version(found, id), spark);
  }

  private static YTreeNode attributes(YtClientConfiguration conf, LookupSpec spec) {
    ArrayList asked = new ArrayList();
    asked.add("id");
    asked.add("dynamic");
    asked.add("schema");
    asked.add("creation_time");
    asked.add(MARK);
    asked.add("tablet_state");
    asked.add("last_commit_timestamp");
    GetNode request = ((GetNode.Builder) GetNode.builder().setPath(YPath.simple(spec.path)).setAttributes(asked)).build();
    try {
      return (YTreeNode) YtClientProvider$.MODULE$.ytClient(conf).getNode(request).join();
    } catch (RuntimeException error) {
      throw new RuntimeException("cannot look up which table is " + spec.title(), error);
    }
  }

  /** Say why the batch must not use the table that the path means now; null if it may. */
  private static String problem(YTreeNode found, LookupSpec spec, long timestamp) {
    if (!found.getAttribute("dynamic").isPresent() || !attribute(found, "dynamic").boolValue()) return "is not a dynamic table now";
    if (earliest(found, spec) > timestamp) return "was built after the micro-batch began";
    if (spec.before == null) return null;
    YTreeNode known = entry(spec.before, "schema");
    return columns(attribute(found, "schema"), known).equals(known.asList()) ? null : "has other columns than when the query started";
  }

  /** The key columns of a schema, and those that have a name that is known. */
  private static List columns(YTreeNode schema, YTreeNode known) {
    HashSet names = new HashSet();
    for (Object one : known.asList()) names.add(entry((YTreeNode) one, "name"));
    ArrayList found = new ArrayList();
    for (Object one : schema.asList()) {
      YTreeNode column = (YTreeNode) one;
      if (column.mapNode().containsKey("sort_order") || names.contains(entry(column, "name"))) found.add(column);
    }
    return found;
  }

  private static YTreeNode entry(YTreeNode map, String key) {
    return (YTreeNode) map.mapNode().get(key).get();
  }

  private static YTreeNode attribute(YTreeNode node, String name) {
    return (YTreeNode) node.getAttribute(name).get();
  }

  /**
   * Name the rows of a table that `make reference` has left frozen. Somebody may write to it between two batches, and
   * freeze it again: the last commit tells.
   */
  private static String version(YTreeNode found, String id) {
    boolean isFrozen = attribute(found, "tablet_state").stringValue().equals("frozen");
    if (!isFrozen || !found.getAttribute(MARK).isPresent()) return null;
    return id + " " + attribute(found, "last_commit_timestamp").longValue();
  }

  /**
   * The first timestamp at which the table has its rows: see cluster/built_reference.py. A table that the query has not
   * started with may be a part of a second younger than its creation time says.
   */
  private static long earliest(YTreeNode found, LookupSpec spec) {
    if (found.getAttribute(MARK).isPresent()) return entry(attribute(found, MARK), "timestamp").longValue();
    boolean isKnown = spec.before == null || entry(spec.before, "id").stringValue().equals(attribute(found, "id").stringValue());
    return Instant.parse(attribute(found, "creation_time").stringValue()).getEpochSecond() + (isKnown ? 0 : 1) << 30;
  }
}
