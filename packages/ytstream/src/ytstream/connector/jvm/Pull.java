package ytstream;

import tech.ytsaurus.client.ApiServiceMethodTable;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.client.request.PullConsumer;
import tech.ytsaurus.client.request.RowBatchReadOptions;
import tech.ytsaurus.client.rpc.RequestWithResponseBuilder;
import tech.ytsaurus.client.rpc.RpcOptions;
import tech.ytsaurus.core.DataSize;
import tech.ytsaurus.core.cypress.YPath;
import tech.ytsaurus.rpcproxy.TReqPullQueueConsumer;
import tech.ytsaurus.rpcproxy.TRspPullQueueConsumer;

/** One PullConsumer request for rows with up to {@code weight} bytes of data: a reply is one array. SPYT asks for a terabyte. */
final class Pull extends Call {
  private final PullConsumer request;

  Pull(CompoundClient yt, String consumer, String queue, int tablet, long first, long rows, long weight) {
    super(yt, "read " + rows + " rows of " + queue + ", partition " + tablet + ", from row " + first);
    request = PullConsumer.builder()
        .setConsumerPath(YPath.simple(consumer))
        .setQueuePath(YPath.simple(queue))
        .setPartitionIndex(tablet)
        .setOffset(Long.valueOf(first))
        .setRowBatchReadOptions(RowBatchReadOptions.builder()
            .setMaxRowCount(rows).setMaxDataWeight(DataSize.fromBytes(weight)).build())
        .build();
    send();
  }

  RequestWithResponseBuilder message(RpcOptions options) {
    RequestWithResponseBuilder message = new RequestWithResponseBuilder(ApiServiceMethodTable.PULL_CONSUMER.createHeader(options),
        TReqPullQueueConsumer.newBuilder(), TRspPullQueueConsumer.parser(), options);
    request.writeHeaderTo(message.header());
    request.writeTo(message);
    return message;
  }
}
