#include "CTOML.h"

// toml++ 3.3 asserts things that a hostile document can make false, and with NDEBUG it assumes them
// instead, which is undefined behaviour. Here they are exceptions that end the parsing.
#undef NDEBUG
namespace {
struct broken_assertion {};
}  // namespace
#define TOML_ASSERT(condition) \
    static_cast<void>(static_cast<bool>(condition) ? 0 : throw broken_assertion{})

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES CTOML_MAX_NESTING
#include <toml++/toml.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "KeyDepth.h"

struct ctoml_document {
    std::vector<ctoml_node> nodes;
    // A deque never moves its elements, so the texts that nodes point to stay where they are.
    std::deque<std::string> texts;
};

namespace {

ctoml_region region_of(const toml::source_region &source) {
    return {{source.begin.line, source.begin.column}, {source.end.line, source.end.column}};
}

bool precedes(const ctoml_position &left, const ctoml_position &right) {
    return left.line != right.line ? left.line < right.line : left.column < right.column;
}

class Flattener {
  public:
    explicit Flattener(ctoml_document &document) : document(document) {}

    void add_root(const toml::table &root) {
        document.nodes.push_back(node_of(root));
        add_children(0, root);
    }

  private:
    ctoml_document &document;

    struct Entry {
        const toml::key *key;
        const toml::node *value;
    };

    static bool is_written_before(const Entry &left, const Entry &right) {
        return precedes(region_of(left.key->source()).begin, region_of(right.key->source()).begin);
    }

    ctoml_text keep(std::string_view text) {
        const std::string &kept = document.texts.emplace_back(text);
        return {kept.data(), kept.size()};
    }

    ctoml_node node_of(const toml::node &value) {
        ctoml_node node{};
        node.region = region_of(value.source());
        switch (value.type()) {
            case toml::node_type::table: node.kind = CTOML_TABLE; break;
            case toml::node_type::array: node.kind = CTOML_ARRAY; break;
            case toml::node_type::string:
                node.kind = CTOML_STRING;
                node.string = keep(value.ref<std::string>());
                break;
            case toml::node_type::integer:
                node.kind = CTOML_INTEGER;
                node.integer = value.ref<int64_t>();
                break;
            case toml::node_type::floating_point:
                node.kind = CTOML_FLOAT;
                node.floating = value.ref<double>();
                break;
            case toml::node_type::boolean:
                node.kind = CTOML_BOOLEAN;
                node.boolean = value.ref<bool>();
                break;
            default: node.kind = CTOML_DATE_OR_TIME; break;
        }
        return node;
    }

    // The nesting limits bound the depth of this recursion.
    void add_children(size_t parent, const toml::node &value) {
        std::vector<Entry> entries;
        if (const toml::table *table = value.as_table()) {
            for (auto &&[key, child] : *table) entries.push_back({&key, &child});
            // toml++ sorts by name; a reader of diagnostics thinks in the order of the file.
            std::stable_sort(entries.begin(), entries.end(), is_written_before);
        } else if (const toml::array *array = value.as_array()) {
            for (auto &&child : *array) entries.push_back({nullptr, &child});
        }
        const size_t first = document.nodes.size();
        document.nodes[parent].first_child = first;
        document.nodes[parent].child_count = entries.size();
        for (const Entry &entry : entries) {
            ctoml_node node = node_of(*entry.value);
            if (entry.key) {
                node.key = keep(entry.key->str());
                node.key_region = region_of(entry.key->source());
            }
            document.nodes.push_back(node);
        }
        for (size_t index = 0; index < entries.size(); index++) {
            add_children(first + index, *entries[index].value);
        }
    }
};

void fill(ctoml_error &error, std::string_view message, ctoml_position position) {
    const size_t count = std::min(message.size(), sizeof(error.message) - 1);
    std::memcpy(error.message, message.data(), count);
    error.message[count] = 0;
    error.position = position;
}

// The line on which toml++ gives up with an assertion, which itself says no place. It reads from
// the front, so every part of the text that ends behind that line fails as well, and none before
// it does.
uint32_t failing_line(std::string_view text) {
    std::vector<size_t> ends;
    for (size_t at = 0; at < text.size(); at++) {
        if (text[at] == '\n') ends.push_back(at + 1);
    }
    size_t low = 0;
    size_t high = ends.size();
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        try {
            (void)toml::parse(text.substr(0, ends[middle]));
            low = middle + 1;
        } catch (const broken_assertion &) {
            high = middle;
        }
    }
    return static_cast<uint32_t>(low + 1);
}

ctoml_document *parse(std::string_view text, ctoml_error &error) {
    if (text.size() > CTOML_MAX_BYTES) {
        fill(error, "the file is larger than 1 MiB", {1, 1});
        return nullptr;
    }
    if (const auto position = too_deep_key(text, CTOML_MAX_KEY_PARTS)) {
        fill(error, "a key has more than 16 parts", *position);
        return nullptr;
    }
    toml::parse_result result;
    try {
        result = toml::parse(text);
    } catch (const broken_assertion &) {
        fill(error, "this is no TOML", {failing_line(text), 1});
        return nullptr;
    }
    if (!result) {
        const toml::parse_error &failure = result.error();
        fill(error, failure.description(), region_of(failure.source()).begin);
        return nullptr;
    }
    auto document = std::make_unique<ctoml_document>();
    Flattener(*document).add_root(result.table());
    return document.release();
}

}  // namespace

ctoml_document *ctoml_parse(const char *bytes, size_t count, ctoml_error *error) {
    try {
        return parse(bytes ? std::string_view(bytes, count) : std::string_view(), *error);
    } catch (const std::exception &failure) {
        fill(*error, failure.what(), {1, 1});
    } catch (...) {
        fill(*error, "the file cannot be read", {1, 1});
    }
    return nullptr;
}

void ctoml_free(ctoml_document *document) {
    delete document;
}

bool ctoml_node_at(const ctoml_document *document, size_t index, ctoml_node *node) {
    if (index >= document->nodes.size()) return false;
    *node = document->nodes[index];
    return true;
}
