package ytstream;

import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map;
import tech.ytsaurus.spyt.streaming.YtStreamingProviderImpl;
import tech.ytsaurus.spyt.streaming.YtStreamingSource;

/** What {@code readStream.format("ytstream.Queue")} finds: the options and the schema are those of format("yt"). */
public final class Queue implements StreamSourceProvider {
  private final YtStreamingProviderImpl spyt = new YtStreamingProviderImpl();

  public Tuple2 sourceSchema(SQLContext context, Option schema, String name, Map options) {
    return spyt.sourceSchema(context, schema, name, options);
  }

  public Source createSource(SQLContext context, String metadata, Option schema, String name, Map options) {
    YtStreamingSource made = (YtStreamingSource) spyt.createSource(context, metadata, schema, name, options);
    return new QueueSource(context, (String) options.apply("consumer_path"), (String) options.apply("path"), made, options);
  }
}
