// A defect on our side ends one call, not the program.
#include "session/live/incoming_call.h"

#include <gtest/gtest.h>
#include <grpcpp/server_builder.h>

#include <new>
#include <stdexcept>

#include "support/raw_client.h"

namespace msdbg::test {
namespace {

using live::IncomingCall;
using live::Rpc;

enum class Throws : uint8_t { kOnMessage, kOnComplete, kNothingStandard };

class Thrower final : public live::CallHandler {
 public:
  explicit Thrower(Throws throws) : throws_(throws) {}
  void on_message(IncomingCall&, grpc::ByteBuffer&) override {
    if (throws_ == Throws::kOnMessage) throw InternalError("defect");
    if (throws_ == Throws::kNothingStandard) throw 42;  // NOLINT
  }
  void on_complete(IncomingCall&) override { throw std::bad_alloc(); }
  void on_cancelled(IncomingCall&) override {}
  void on_exception(IncomingCall& call, const char* what) noexcept override { call.fail(grpc::StatusCode::INTERNAL, what); }

 private:
  Throws throws_;
};

class Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(Throws throws) : handler_(throws) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new IncomingCall(handler_, *live::find_rpc(context->method()), 1, context->peer());
  }

 private:
  Thrower handler_;
};

TEST(IncomingCall, AnExceptionInAReactionEndsTheCallWithAnInternalError) {
  for (const Throws throws : {Throws::kOnMessage, Throws::kOnComplete, Throws::kNothingStandard}) {
    Service service(throws);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterCallbackGenericService(&service);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    ASSERT_TRUE(server);
    {
      const std::unique_ptr<RawClient> client = RawClient::connect(port);
      ASSERT_TRUE(client);
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(client->repeat(Rpc::kSendTensors, "x", 3).code, static_cast<int>(grpc::StatusCode::INTERNAL));
        EXPECT_EQ(client->unary(Rpc::kSendMetadata, "x").code, static_cast<int>(grpc::StatusCode::INTERNAL));
      }
    }
    server->Shutdown();
  }
}

}  // namespace
}  // namespace msdbg::test
