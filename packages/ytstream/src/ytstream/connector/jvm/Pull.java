package ytstream;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import tech.ytsaurus.client.ApiServiceClientImpl;
import tech.ytsaurus.client.ApiServiceMethodTable;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.client.request.PullConsumer;
import tech.ytsaurus.client.request.RowBatchReadOptions;
import tech.ytsaurus.client.rpc.RequestWithResponseBuilder;
import tech.ytsaurus.client.rpc.RpcClientRequestBuilder;
import tech.ytsaurus.client.rpc.RpcClientResponse;
import tech.ytsaurus.client.rpc.RpcOptions;
import tech.ytsaurus.core.DataSize;
import tech.ytsaurus.core.cypress.YPath;
import tech.ytsaurus.rpcproxy.TReqPullQueueConsumer;
import tech.ytsaurus.rpcproxy.TRspPullQueueConsumer;

/**
 * One PullConsumer request, under way. The client's own pullConsumer() makes an object of each value; this hands over
 * the reply as it came. The client does not offer that, so its two members are called by reflection.
 */
final class Pull {
  /** A reply is one array in memory. SPYT asks for up to a terabyte. */
  private static final DataSize WEIGHT = DataSize.fromMegaBytes(128);
  private static final int ATTEMPTS = 6;
  private static final long TIMEOUT_SECONDS = 30;
  private static final long[] PAUSES = {1, 2, 5, 10, 20};
  private static final Field OPTIONS;
  private static final Method INVOKE;

  // Another client may lack them: then this class does not load, and the job runs on SPYT's.
  static {
    try {
      OPTIONS = ApiServiceClientImpl.class.getDeclaredField("rpcOptions");
      OPTIONS.setAccessible(true);
      INVOKE = ApiServiceClientImpl.class.getDeclaredMethod("invoke", new Class[] {RpcClientRequestBuilder.class});
      INVOKE.setAccessible(true);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException("the client of YTsaurus has other members", error);
    }
  }

  private final CompoundClient yt;
  private final PullConsumer request;
  private final String what;
  private CompletableFuture coming;

  Pull(CompoundClient yt, String consumer, String queue, int tablet, long first, long rows) {
    this.yt = yt;
    what = rows + " rows of " + queue + ", partition " + tablet + ", from row " + first;
    request = PullConsumer.builder()
        .setConsumerPath(YPath.simple(consumer))
        .setQueuePath(YPath.simple(queue))
        .setPartitionIndex(tablet)
        .setOffset(Long.valueOf(first))
        .setRowBatchReadOptions(RowBatchReadOptions.builder().setMaxRowCount(rows).setMaxDataWeight(WEIGHT).build())
        .build();
    coming = sent();
  }

  /** Wait for the reply; ask again a few times where it is an error, as SPYT does (Utils.runWithRetry). */
  RpcClientResponse reply() throws Exception {
    for (int attempt = 1; ; attempt++) {
      try {
        return (RpcClientResponse) coming.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
      } catch (InterruptedException stopped) {
        throw stopped;
      } catch (Exception error) {
        coming.cancel(true);
        if (attempt == ATTEMPTS) throw new RuntimeException("cannot read " + what, error);
      }
      Thread.sleep(PAUSES[attempt - 1] * 1000);
      coming = sent();
    }
  }

  private CompletableFuture sent() {
    try {
      RpcOptions options = (RpcOptions) OPTIONS.get(yt);
      RequestWithResponseBuilder message = new RequestWithResponseBuilder(ApiServiceMethodTable.PULL_CONSUMER.createHeader(options),
          TReqPullQueueConsumer.newBuilder(), TRspPullQueueConsumer.parser(), options);
      request.writeHeaderTo(message.header());
      request.writeTo(message);
      return (CompletableFuture) INVOKE.invoke(yt, new Object[] {message});
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }
}
