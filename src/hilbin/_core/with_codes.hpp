// Codes as Python passes them.
#pragma once
#include "bindings.hpp"
#include "codes.hpp"

namespace hilbin {

using Int64s = Vector<const int64_t>;

// Calls use(matrix) for codes that are dense, if there are no indices, or CSR.
template <class Code, class Use>
void with_codes(const Vector<const Code>& codes, const Vector<const int32_t>& indices, const Int64s& indptr, ptrdiff_t columns, Use use) {
  if (indptr.shape(0) > 0) {
    require(codes.shape(0) == indices.shape(0), "codes have the wrong length");
    require_pointers(indptr, codes.shape(0), "indptr is out of range");
    require_below(indices.data(), indices.shape(0), uint64_t(columns), "a column is out of range");
    use(SparseMatrix<Code>{codes.data(), indices.data(), indptr.data()});
  } else {
    use(DenseMatrix<Code>{codes.data(), columns});
  }
}

}  // namespace hilbin
