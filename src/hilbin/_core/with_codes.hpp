// Codes as Python passes them.
#pragma once
#include "bindings.hpp"
#include "codes.hpp"

namespace hilbin {

using Int64s = Vector<const int64_t>;

// Calls use(matrix) for codes that are dense, if there is no indptr, or CSR, of which the rows [begin, end) are checked.
template <class Code, class Use>
void with_codes(const Vector<const Code>& codes, const Vector<const int32_t>& indices, const Int64s& indptr, ptrdiff_t columns,
                ptrdiff_t begin, ptrdiff_t end, Use use) {
  require(indptr.shape(0) > 0 ? end < ptrdiff_t(indptr.shape(0)) : end * columns <= ptrdiff_t(codes.shape(0)),
          "there are fewer codes than rows");
  if (indptr.shape(0) > 0) {
    require(codes.shape(0) == indices.shape(0), "codes have the wrong length");
    const int64_t* rows = indptr.data();
    require_pointers(rows + begin, size_t(end - begin), codes.shape(0), "indptr is out of range");
    require_below(indices.data() + rows[begin], size_t(rows[end] - rows[begin]), uint64_t(columns), "a column is out of range");
    use(SparseMatrix<Code>{codes.data(), indices.data(), indptr.data()});
  } else {
    use(DenseMatrix<Code>{codes.data(), columns});
  }
}

}  // namespace hilbin
