package ytstream;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Iterator;
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
import tech.ytsaurus.spyt.wrapper.YtWrapper;
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
    if (spec.timestamp > 0) return new Moment(spec.path, spec.path.substring(1), spec.timestamp, null, spark); // #id
    if (now.isEmpty()) return taken(conf, spark, spec.path, started(conf)); // not a micro-batch: a replay, a preview, a test
    if (!now.equals(batch)) {
      TAKEN.clear();
      batch = "";
      time = started(conf);
      batch = now;
    }
    Moment known = (Moment) TAKEN.get(spec.name);
    if (known == null) {
      known = taken(conf, spark, spec.path, time);
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

  private static long started(YtClientConfiguration conf) {
    Option opened = YtStreamingTransactionContext.get();
    if (opened.isEmpty()) return generated(conf);
    StreamingTxContext context = (StreamingTxContext) opened.get();
    Option proxy = context.stickyAddress();
    CompoundClient yt = YtClientProvider$.MODULE$.ytClient(proxy.isDefined() ? Output.pinned(conf, proxy) : conf);
    return YtWrapper.attachTransaction(context.txId(), false, Option.empty(), yt).getStartTimestamp().getValue();
  }

  private static long generated(YtClientConfiguration conf) {
    CompoundClient yt = YtClientProvider$.MODULE$.ytClient(conf);
    return ((YtTimestamp) yt.generateTimestamps(new GenerateTimestamps(1)).join()).getValue();
  }

  /** Find which table the path means now. It must have had its rows at that time: see cluster/built_reference.py. */
  private static Moment taken(YtClientConfiguration conf, SparkContext spark, String path, long timestamp) {
    ArrayList asked = new ArrayList();
    asked.add("id");
    asked.add("creation_time");
    asked.add(MARK);
    asked.add("tablet_state");
    asked.add("last_commit_timestamp");
    GetNode request = ((GetNode.Builder) GetNode.builder().setPath(YPath.simple(path)).setAttributes(asked)).build();
    YTreeNode found = (YTreeNode) YtClientProvider$.MODULE$.ytClient(conf).getNode(request).join();
    if (earliest(found) > timestamp) {
      throw new IllegalStateException("the reference " + path + " was built after the micro-batch began, which runs again");
    }
    String id = ((YTreeNode) found.getAttribute("id").get()).stringValue();
    return new Moment(path, id, timestamp, version(found, id), spark);
  }

  /**
   * Name the rows of a table that `make reference` has left frozen. Somebody may write to it between two batches, and
   * freeze it again: the last commit tells.
   */
  private static String version(YTreeNode found, String id) {
    boolean isFrozen = ((YTreeNode) found.getAttribute("tablet_state").get()).stringValue().equals("frozen");
    if (!isFrozen || !found.getAttribute(MARK).isPresent()) return null;
    return id + " " + ((YTreeNode) found.getAttribute("last_commit_timestamp").get()).longValue();
  }

  /** The first timestamp at which the table has its rows. */
  private static long earliest(YTreeNode found) {
    if (found.getAttribute(MARK).isPresent()) {
      return ((YTreeNode) ((YTreeNode) found.getAttribute(MARK).get()).mapNode().get("timestamp").get()).longValue();
    }
    String created = ((YTreeNode) found.getAttribute("creation_time").get()).stringValue();
    return (Instant.parse(created).getEpochSecond()) << 30;
  }
}
