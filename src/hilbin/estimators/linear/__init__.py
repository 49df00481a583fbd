"""Linear models on explicit features, of data of any size.

A feature map makes features of rows; a model is linear in them. Least squares and principal
components take one or two passes over the data, from which sums remain; support vector machines
take a pass for every cutting plane.
"""
