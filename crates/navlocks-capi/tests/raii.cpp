// A guard in C++: the lock is released at the end of its scope, also by an exception.

#include "navlocks.h"

#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace {

navlocks_text text(std::string_view utf8) {
  return {utf8.data(), utf8.size(), NAVLOCKS_UTF8};
}

void check(bool condition, const char *what) {
  if (!condition) throw std::logic_error(what);
}

class Client {
 public:
  Client(std::uint64_t host, std::uint64_t group) : host_(host) {
    check(navlocks_client_open(host, group, text("partition"), text("client"), &id_) == NAVLOCKS_STATUS_OK, "open");
  }
  ~Client() { navlocks_client_close(host_, id_); }
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;

  class Guard {
   public:
    Guard(Guard &&other) noexcept : client_(std::exchange(other.client_, nullptr)), number_(other.number_) {}
    ~Guard() {
      // Also right if a grant is on its way.
      if (client_ != nullptr) navlocks_cancel(client_->host_, client_->id_, number_);
    }
    explicit operator bool() const { return client_ != nullptr; }

   private:
    friend class Client;
    Guard(Client *client, std::uint64_t number) : client_(client), number_(number) {}
    Client *client_;
    std::uint64_t number_;
  };

  Guard try_lock(std::string_view name) {
    const auto scope = text(name);
    const auto number = ++last_;
    const auto status = navlocks_request(host_, id_, number, &scope, 1, NAVLOCKS_EXCLUSIVE, NAVLOCKS_WAIT_IF_AVAILABLE, nullptr, nullptr);
    return Guard(status == NAVLOCKS_STATUS_OK ? this : nullptr, number);
  }

 private:
  std::uint64_t host_;
  std::uint64_t id_ = 0;
  std::uint64_t last_ = 0;
};

}  // namespace

int main() {
  const std::uint8_t key[16] = {7};
  std::uint64_t host = 0, group = 0;
  check(navlocks_host_new(key, &host) == NAVLOCKS_STATUS_OK, "host");
  check(navlocks_group_new(host, &group) == NAVLOCKS_STATUS_OK, "group");
  Client one(host, group), two(host, group);
  try {
    auto guard = one.try_lock("cart");
    check(bool(guard), "the lock is free");
    check(!two.try_lock("cart"), "the lock is held");
    throw std::runtime_error("on the way out");
  } catch (const std::runtime_error &) {
    check(bool(two.try_lock("cart")), "the exception released the lock");
  }
  auto moved = one.try_lock("cart");
  auto guard = std::move(moved);
  check(bool(guard) && !moved && !two.try_lock("cart"), "a moved guard holds");
  std::puts("ok");
}
